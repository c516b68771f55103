package transport

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} { // net/http reads them once
		if err := os.Setenv(name, "http://proxy.test:3128"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
