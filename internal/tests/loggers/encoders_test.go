package loggers

import (
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"example.com/payvault"
	"example.com/payvault/internal/tests/canary"
)

// TestBinaryEncoders checks that CBOR reads amounts back, writes secrets as [REDACTED] and refuses to read [REDACTED]
// as a secret. BSON must refuse to write amounts and secrets.
func TestBinaryEncoders(t *testing.T) {
	t.Parallel()
	type invoice struct{ Amount payvault.Amount }
	type payment struct{ Card payvault.Secret }
	due, paid := invoice{payvault.MustParseAmount("12.50")}, payment{payvault.NewSecret(canary.Secret)}

	text, err := cbor.Marshal(due)
	require.NoError(t, err)
	var back invoice
	require.NoError(t, cbor.Unmarshal(text, &back))
	assert.Equal(t, due, back)
	text, err = cbor.Marshal(paid)
	require.NoError(t, err)
	assert.Contains(t, string(text), "[REDACTED]")
	require.ErrorContains(t, cbor.Unmarshal(text, new(payment)), "a redacted secret")

	for _, value := range []any{due, &due, paid, &paid, bson.M{"a": due.Amount}, bson.M{"a": paid.Card}} {
		text, err = bson.Marshal(value)
		require.ErrorContains(t, err, "has no form in BSON", "%T", value)
		assert.Empty(t, text)
	}
}
