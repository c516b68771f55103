package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// An applicationKey is a row of the table of application keys.
type applicationKey struct {
	Key      string   `json:"key"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	Values   []string `json:"values"`
	Value    string   `json:"value"` // name of the schema, if it is no open text
}

func applicationKeys(t *testing.T, c *contract) []applicationKey {
	t.Helper()
	text, err := json.Marshal(c.schema(t, "ApplicationValueByKey").Value.Extensions["x-application-keys"])
	require.NoError(t, err)
	var keys []applicationKey
	require.NoError(t, json.Unmarshal(text, &keys))
	return keys
}

// schema describes the schema that the value of a key has to have.
func (k applicationKey) schema() string {
	if k.Value != "" || k.Values == nil {
		return cmp.Or(k.Value, "string")
	}
	if k.Type != "checkbox_group" {
		return `string, enum ["` + strings.Join(k.Values, `","`) + `"]`
	}
	one := "(" + strings.ReplaceAll(strings.Join(k.Values, "|"), "+", `\\+`) + ")"
	return `string, pattern "^\\{(` + one + "(," + one + `)*)?\\}$"`
}

// TestApplicationKeys holds the table of application keys against the branches that say what their values are.
func TestApplicationKeys(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	var listed, branches []string
	keys := applicationKeys(t, c)
	for _, key := range keys {
		listed = append(listed, fact(key.Key, key.Type, key.schema()))
		if key.Type == "checkbox_row" {
			row := c.schema(t, key.Value).Value
			assert.Len(t, row.Properties, len(key.Values), key.Value)
			for _, name := range key.Values {
				assert.Contains(t, row.Properties, name, key.Value)
			}
		}
	}
	for _, branch := range c.schema(t, "ApplicationValueByKey").Value.OneOf {
		properties := branch.Value.Properties
		assert.ElementsMatch(t, []string{"key", "value"}, branch.Value.Required, branch.Value.Title)
		for _, name := range shownValues(properties["key"].Value) {
			branches = append(branches, fact(name, shownValues(properties["type"].Value)[0], describe(t, properties["value"])))
		}
		if others := properties["key"].Value.Not; others != nil {
			assert.Len(t, shownValues(others.Value), len(keys), "the branch of all other keys")
			assert.Equal(t, "one of string / object", describe(t, properties["value"]))
		}
	}
	assert.Len(t, keys, 35)
	failList(t, "in x-application-keys, not in the branches of ApplicationValueByKey", without(listed, branches))
	failList(t, "in the branches of ApplicationValueByKey, not in x-application-keys", without(branches, listed))
}

// TestSettings wants the emulator to report every key with the type, the required flag and the options of the table.
func TestSettings(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.client = e.partner
	data := allData(t) // of a business for which the emulator requires what the table does
	data.BusinessType, data.FulfillmentProviderFlag = "llc", "business"
	result, err := saveData(data)(t.Context(), e)
	require.NoError(t, err)
	saved := map[string]payvault.SavedField{}
	for _, field := range result.([]payvault.SavedField) {
		saved[field.Key] = field
	}
	for _, key := range applicationKeys(t, loadContract(t)) {
		field := saved[key.Key]
		what := fmt.Sprintf("emulator: %s, in the document %+v", key.Key, key)
		assert.Equal(t, key.Type, field.Type, what)
		assert.Equal(t, key.Required, field.Settings.Required, what)
		var options []string
		for _, option := range field.Settings.Options {
			options = append(options, fmt.Sprint(option.Value))
		}
		if key.Type == "toggle" { // its values are the strings true and false, not options
			assert.Equal(t, []string{"true", "false"}, key.Values)
			key.Values = nil
		}
		assert.Equal(t, key.Values, options, what)
	}
}
