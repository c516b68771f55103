package payvault_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the package if a test leaves a goroutine behind: every server and every pool is closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
