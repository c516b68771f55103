package payvault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/payvaulttest"
)

// TestApplicationFields checks that ApplicationFields has each field that the emulator saves, in the same order, with
// the same type and settings. The emulator takes type and settings from api/openapi.yaml. The emulator sends no options
// for a checkbox_row, so the test compares the options of such a field with the boxes of the saved value.
func TestApplicationFields(t *testing.T) {
	t.Parallel()
	server := payvaulttest.NewServer()
	t.Cleanup(server.Close)
	full, _ := calls.Of(payvault.OpApplicationsSaveData).Full.(*payvault.ApplicationData)
	full.FulfillmentProviderFlag = payvault.FulfillmentBusiness // with it, the fields of the provider are not required
	application := server.Applications.Seed(payvaulttest.Application{})
	saved, err := server.PartnerClient().Applications.SaveData(t.Context(), application.ID, full)
	require.NoError(t, err)
	fields := payvault.ApplicationFields()
	require.Len(t, fields, len(saved))
	for i, field := range fields {
		want := payvault.ApplicationFieldInfo{Key: saved[i].Key, Type: saved[i].Type, Settings: saved[i].Settings}
		if field.Type == "checkbox_row" {
			var boxes map[string]bool
			require.NoError(t, saved[i].Decode(&boxes))
			assert.Len(t, field.Settings.Options, len(boxes), field.Key)
			for _, option := range field.Settings.Options {
				assert.Equal(t, payvault.FieldOption{Label: option.Value, Value: option.Value}, option)
				assert.Contains(t, boxes, option.Value, field.Key)
			}
			want.Settings.Options = field.Settings.Options
		}
		assert.Equal(t, want, field)
	}
}
