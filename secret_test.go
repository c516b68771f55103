package payvault_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestSecret checks that a secret is read from a text, written as [REDACTED], and compared by its text. Reading a text
// that contains [REDACTED] fails.
func TestSecret(t *testing.T) {
	t.Parallel()
	const number = "4111111111111111"
	secret, same, none := payvault.NewSecret(number), payvault.NewSecret(number), payvault.NewSecret("")
	assert.Equal(t, secret, same, "as reflect.DeepEqual sees it")
	assert.NotEqual(t, secret, payvault.NewSecret("4111111111111112"))
	assert.False(t, secret == same || secret == none || secret.IsZero())
	assert.True(t, none == payvault.Secret{} && none.IsZero())
	for _, text := range []string{"", number, strings.Repeat("long text, ", 100), "\x00\xff", "é"} {
		assert.Equal(t, text, payvault.NewSecret(text).Reveal())
	}
	for how, unmarshal := range service.Readers() {
		for text, want := range map[string]payvault.Secret{
			`"\u0034111111111111111"`: secret, number: secret, `""`: none, `null`: none, `false`: none,
			`"\u00a0"`: none,
		} {
			var back payvault.Secret
			require.NoError(t, unmarshal([]byte(text), &back), how)
			assert.Equal(t, want, back, how)
		}
		for _, text := range []string{
			`"\u005bREDACTED]"`, `" [REDACTED]\n"`, `"%B[REDACTED]^DOE/JOHN^2512101?"`, `true`, `["` + number + `"]`,
		} {
			err := unmarshal([]byte(text), new(payvault.Secret))
			require.Error(t, err, "%s: %s", how, text)
			assert.NotContains(t, err.Error(), number, how)
		}
	}
	var gobbed bytes.Buffer
	require.NoError(t, gob.NewEncoder(&gobbed).Encode(secret))
	require.ErrorContains(t, gob.NewDecoder(&gobbed).Decode(new(payvault.Secret)), "a redacted secret")
	for _, value := range []any{secret, &secret} {
		assert.Equal(t, strings.Repeat(mark, 5), fmt.Sprintf("%v%s%+[1]v%[1]x%[1]d", value, value))
		assert.Equal(t, `"[REDACTED]" "[REDACTED]"`, fmt.Sprintf("%q %#v", value, value))
	}
	assert.Equal(t, `""`, fmt.Sprintf("%v%s%+v%q", none, none, &none, none), "that nothing is there is no secret")
	text, err := json.Marshal([]any{none, &none, secret})
	require.NoError(t, err)
	assert.Equal(t, `["","","[REDACTED]"]`, string(text))
}

// TestSecret_oneKnown checks that no two blocks of eight bytes are hidden with the same bytes. Otherwise somebody who
// knows one block could decode others from a memory dump.
func TestSecret_oneKnown(t *testing.T) {
	t.Parallel()
	hidden := func(text string) string { // returns the hidden form of text
		return reflect.ValueOf(payvault.NewSecret(text)).Field(0).Elem().FieldByName("text").String()
	}
	stream := func(text string) string {
		masked := []byte(hidden(text))
		require.Len(t, masked, len(text))
		for i := range masked {
			masked[i] ^= text[i]
		}
		return string(masked)
	}
	const known, other = "4111111111111111", "5105105105105100"
	for at := 0; at < len(known); at += 8 {
		assert.NotEqual(t, stream(known)[at:at+8], stream(other)[at:at+8])
	}
	long := stream(strings.Repeat("long text, ", 100))
	for at := 8; at+8 <= len(long); at += 8 {
		assert.NotContains(t, long[at:], long[at-8:at], "no part shows another one")
	}
}
