package clients

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = "../../api/openapi.yaml"

// TestGeneratedClients generates the clients and runs the tests in testdata/calls with them.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds two generators, which takes minutes") // .ci/run does not use -short for this module
	}
	require.NoError(t, os.MkdirAll("testdata/generated/oapi", 0o750))
	for _, command := range [][]string{
		{"tool", "oapi-codegen", "-package", "oapi", "-o", "testdata/generated/oapi/oapi.go", document},
		{"tool", "ogen", "-target", "testdata/generated/ogen", "-package", "ogen", "-clean", document},
		{"test", "-count=1", "./testdata/calls"},
	} {
		output, err := exec.CommandContext(t.Context(), "go", command...).CombinedOutput() //nolint:gosec // constants
		require.NoError(t, err, "go %v:\n%s", command, output)
	}
}
