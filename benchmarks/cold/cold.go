// Package cold measures what a program pays before its second call. Each client has a program of its own below it, so that
// sizes and package initialization can be compared.
package cold

import (
	"context"
	"fmt"
	"os"
	"time"

	"example.com/payvault/benchmarks/client"
)

// Main makes a client and two calls, and prints how many nanoseconds each of the three took.
func Main(makeCall client.New, answer string) {
	start := time.Now()
	call, err := makeCall("http://127.0.0.1", client.Canned(answer))
	times := []time.Duration{time.Since(start)}
	for range 2 {
		start = time.Now()
		if err == nil {
			err = call(context.Background())
		}
		times = append(times, time.Since(start))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, times[0].Nanoseconds(), times[1].Nanoseconds(), times[2].Nanoseconds())
}
