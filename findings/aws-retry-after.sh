#!/usr/bin/env bash
# Guess:        The standard retryer of the AWS SDK waits at least as long as Retry-After asks.
# What happens: It does not look at the header. After 503 with "Retry-After: 120" its three delays are each under a
#               second, so all attempts are over long before the service is ready.
# Versions:     aws-sdk-go-v2 v1.48.0, Go 1.26.8
# Who meets it: Programs that use the retryers of the SDK, or take them as a model for another service.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/aws/aws-sdk-go-v2@v1.48.0 github.com/aws/smithy-go@v1.28.8 <<'GO'
package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func main() {
	busy := &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"120"}}}},
		Err:      errors.New("busy"),
	}
	standard := retry.NewStandard()
	fmt.Println("is repeated:", standard.IsErrorRetryable(busy))
	for attempt := 1; attempt <= 3; attempt++ {
		delay, err := standard.RetryDelay(attempt, busy)
		fmt.Printf("delay %d is under a second: %t, %v\n", attempt, delay < time.Second, err)
	}
}
GO
seen_is <<'END'
is repeated: true
delay 1 is under a second: true, <nil>
delay 2 is under a second: true, <nil>
delay 3 is under a second: true, <nil>
END
