package sqlpayvault_test

import (
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the tests on Postgres
	"go.uber.org/goleak"
)

// TestMain lets the test binary be the program that a test kills.
func TestMain(m *testing.M) {
	if url := os.Getenv("SQLPAYVAULT_SERVICE"); url != "" {
		submit(url)
		return
	}
	goleak.VerifyTestMain(m)
}
