#!/usr/bin/env bash
# Guess:        0 attempts means that nothing is repeated. Nobody turns repeats on with a 0.
# What happens: With avast/retry-go Attempts(0), cenkalti/backoff v5 WithMaxTries(0) and failsafe-go WithMaxAttempts(0)
#               there is no limit, and the AWS SDK's AddWithMaxAttempts(0) means the same. sethvargo/go-retry
#               WithMaxRetries(0) and failsafe-go WithMaxRetries(0) try once. NewStandard of the AWS SDK takes a 0 for
#               its default, 3.
# Versions:     avast/retry-go v4.7.0, cenkalti/backoff v5.0.3, failsafe-go v0.9.8, sethvargo/go-retry v0.5.0,
#               aws-sdk-go-v2 v1.48.0, Go 1.26.8
# Who meets it: Whoever sets the retries of a payment to 0 in a configuration, or moves from one library to another.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/avast/retry-go/v4@v4.7.0 github.com/cenkalti/backoff/v5@v5.0.3 github.com/failsafe-go/failsafe-go@v0.9.8 \
	github.com/sethvargo/go-retry@v0.5.0 github.com/aws/aws-sdk-go-v2@v1.48.0 <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	avast "github.com/avast/retry-go/v4"
	aws "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	sethvargo "github.com/sethvargo/go-retry"
)

func main() {
	ctx := context.Background()
	tries := 0
	// pay succeeds at the 50th try, so that every library comes to an end.
	pay := func() error {
		if tries++; tries < 50 {
			return errors.New("busy")
		}
		return nil
	}
	show := func(what string, err error) {
		fmt.Printf("%s: %d tries, %v\n", what, tries, err)
		tries = 0
	}
	show("avast Attempts(0)", avast.Do(pay, avast.Attempts(0), avast.DelayType(avast.FixedDelay), avast.Delay(time.Millisecond)))
	_, err := backoff.Retry(ctx, func() (bool, error) { return true, pay() },
		backoff.WithMaxTries(0), backoff.WithBackOff(backoff.NewConstantBackOff(time.Millisecond)))
	show("cenkalti WithMaxTries(0)", err)
	show("failsafe WithMaxAttempts(0)", failsafe.With(retrypolicy.NewBuilder[any]().WithMaxAttempts(0).Build()).Run(pay))
	show("failsafe WithMaxRetries(0)", failsafe.With(retrypolicy.NewBuilder[any]().WithMaxRetries(0).ReturnLastFailure().Build()).Run(pay))
	show("sethvargo WithMaxRetries(0)", sethvargo.Do(ctx, sethvargo.WithMaxRetries(0, sethvargo.NewConstant(time.Millisecond)),
		func(context.Context) error { return sethvargo.RetryableError(pay()) }))
	fmt.Println("AWS AddWithMaxAttempts(0), where 0 has no limit:", aws.AddWithMaxAttempts(aws.NewStandard(), 0).MaxAttempts())
	fmt.Println("AWS NewStandard with MaxAttempts 0:", aws.NewStandard(func(o *aws.StandardOptions) { o.MaxAttempts = 0 }).MaxAttempts())
}
GO
seen_is <<'END'
avast Attempts(0): 50 tries, <nil>
cenkalti WithMaxTries(0): 50 tries, <nil>
failsafe WithMaxAttempts(0): 50 tries, <nil>
failsafe WithMaxRetries(0): 1 tries, busy
sethvargo WithMaxRetries(0): 1 tries, busy
AWS AddWithMaxAttempts(0), where 0 has no limit: 0
AWS NewStandard with MaxAttempts 0: 3
END
