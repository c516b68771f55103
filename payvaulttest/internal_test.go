package payvaulttest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
)

// TestApplicationFields checks that payvault.ApplicationFields has each field of application data in api/openapi.yaml
// once, with its type, its flag and its values.
func TestApplicationFields(t *testing.T) {
	t.Parallel()
	document, seen := theDocument(), map[string]bool{}
	for _, info := range payvault.ApplicationFields() {
		field := document.fields[info.Key]
		var options []map[string]any
		for _, option := range info.Settings.Options {
			options = append(options, map[string]any{"label": option.Label, "value": option.Value})
		}
		assert.Equal(t, field.kind, info.Type, info.Key)
		assert.Equal(t, field.required, info.Settings.Required, info.Key)
		if field.kind == "checkbox_row" { // the emulator sends no options for it
			boxes := map[string]any{}
			for _, option := range info.Settings.Options {
				boxes[option.Value] = true
			}
			assert.Empty(t, field.schema.Check(info.Key, boxes), info.Key)
			assert.Len(t, boxes, map[string]int{"card_brands": 5, "fulfillment_delivery_method": 4}[info.Key])
		} else {
			assert.Equal(t, field.options, options, info.Key)
		}
		assert.False(t, seen[info.Key], info.Key)
		seen[info.Key] = true
	}
	assert.Len(t, seen, len(document.fields))
}

// TestPermittedRate checks how many requests a fault of the kind PermitRate permits in ten seconds: ten times the rate,
// plus a burst at the start. The burst has the requests of one second, and at least one.
func TestPermittedRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{20: 20 + 200, 0.5: 1 + 5} {
		synctest.Test(t, func(t *testing.T) {
			var f faults
			f.add(Fault{Kind: PermitRate, Rate: rate})
			taken := 0
			for range 10_001 { // one request each millisecond, for ten seconds
				if f.take("").Kind == "" {
					taken++
				}
				<-time.After(time.Millisecond)
			}
			assert.InDelta(t, want, taken, 1, "at %v a second", rate)
		})
	}
}
