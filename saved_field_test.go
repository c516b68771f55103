package payvault_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestSavedField_Decode checks that Decode reads saved values of many JSON forms into variables of suitable types.
// MarshalWire must write each field as it was read. An error must have the key and not the value.
func TestSavedField_Decode(t *testing.T) {
	type ownType struct {
		Text  string // the JSON has a number here, which only the tolerant decoder reads
		Float float64
		Uint  uint
		Bytes []byte
		Pair  [2]string
	}
	t.Parallel()
	secret := payvault.NewSecret
	for _, test := range []struct {
		value      string
		into, want any // both are pointers: to the variable, and to its expected value
	}{
		{`null`, new("before"), new("before")},
		{`"Name"`, new(string), new("Name")},
		{`true`, new(bool), new(true)},
		{`"true"`, new(bool), new(true)},
		{`25000.50`, new(payvault.Amount), new(payvault.MustParseAmount("25000.50"))},
		{`""`, new(payvault.Amount), new(payvault.Amount)},
		{`"{}"`, new(payvault.AuthTimes), &payvault.AuthTimes{}},
		{`"{1,30,30+,90+}"`, new(payvault.AuthTimes), &payvault.AuthTimes{"1", "30", "30+", "90+"}},
		{`{"mc":true}`, new(payvault.CardBrands), &payvault.CardBrands{MC: true}},
		{`"xx"`, new(payvault.TradingStatus), new(payvault.TradingStatus("xx"))},
		{`123456789`, new(payvault.Secret), new(secret("123456789"))},
		{`12345678901234567890.10`, new(any), new(any(json.Number("12345678901234567890.10")))},
		{`{"inner":[1,true]}`, new(map[string]any), &map[string]any{"inner": []any{1.0, true}}},
		{`{"a":1.5,"b":"annulled"}`, new(map[string]any), &map[string]any{"a": 1.5, "b": "annulled"}},
		{
			`{"text":5,"float":1.5,"uint":7,"bytes":"AQI=","pair":["a","b"]}`, new(ownType),
			&ownType{"5", 1.5, 7, []byte{1, 2}, [2]string{"a", "b"}},
		},
	} {
		wire := `{"key":"k","value":` + test.value + `,"type":"text","settings":{"required":false}}`
		var saved payvault.SavedField
		require.NoError(t, json.Unmarshal([]byte(wire), &saved))
		assert.Equal(t, test.value == `null`, saved.Value.IsZero(), test.value)
		require.NoError(t, saved.Decode(test.into), test.value)
		assert.Equal(t, test.want, test.into, test.value)
		again, err := payvault.MarshalWire(saved)
		require.NoError(t, err)
		assert.Equal(t, wire, string(again))
	}
	for value, into := range map[string]any{
		`"perhaps"`: new(bool), `"20 May"`: new(payvault.Date), `["1","30"]`: new(payvault.AuthTimes),
		`{"first":"x"}`: new(string), `{"owners":["12"]}`: new(payvault.Ownership), `"[REDACTED]"`: new(payvault.Secret),
		`{"owners":[null]}`: new(payvault.Ownership), `{"owners":[""]}`: new(payvault.Ownership),
	} {
		err := payvault.SavedField{Key: "k", Value: secret(value)}.Decode(into)
		require.ErrorContains(t, err, "payvault: /k", value)
		require.ErrorContains(t, err, " cannot be read: ", value)
		assert.NotContains(t, err.Error(), strings.Trim(value, `"`))
	}
	for _, into := range []any{true, nil, (*bool)(nil)} {
		err := payvault.SavedField{Key: "k", Value: secret("true")}.Decode(into)
		require.EqualError(t, err, "payvault: k needs a pointer that is not nil to be read into")
	}
	err := json.Unmarshal([]byte(`{"key":"k","value":"[REDACTED]"}`), new(payvault.SavedField))
	require.EqualError(t, err, "/value cannot be read: a redacted secret, whose text is lost")
}
