// Command mocks calls every operation on a mock server that answers as the OpenAPI document says. The command fails if
// a call fails, for example because the SDK cannot read the answer.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:4010", "base address of the mock")
	rounds := flag.Int("rounds", 1, "how often each call is made")
	flag.Parse()
	failed, err := run(context.Background(), *url, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

// run makes the calls and returns the number of calls that failed.
func run(ctx context.Context, url string, rounds int) (int, error) {
	client, err := payvault.NewClient(url, "merchant-api-key", payvault.WithMerchantID(100001),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}))
	if err != nil {
		return 0, err
	}
	made, failed := 0, 0
	for range rounds {
		for _, o := range calls.Table() {
			made++
			if _, err := o.Do(ctx, client, calls.Documented(), o.Minimal); err != nil {
				failed++
				fmt.Fprintf(os.Stderr, "%s: %v\n", o.Op, err)
			}
		}
	}
	_, _ = fmt.Fprintf(os.Stdout, "%d answers were read, %d were not\n", made-failed, failed)
	return failed, nil
}
