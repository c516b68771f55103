package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestEmulatorColumns asks the emulator about every name in its source: it may sort by the properties that are one value,
// and by no others; and a filter for the value that a record has there finds a record.
func TestEmulatorColumns(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	for schema, test := range map[string]struct {
		prepare call
		list    func(*env, *payvault.ListOptions) call
		besides []string
	}{
		"Customer": {createCustomerFull(t), func(_ *env, opt *payvault.ListOptions) call { return listCustomers(opt) }, nil},
		"SubscriptionTransaction": {
			func(_ context.Context, e *env) (any, error) { return seedSubscription(e), nil },
			func(e *env, opt *payvault.ListOptions) call {
				return func(ctx context.Context, _ *env) (any, error) {
					return e.merchant.Subscriptions.Transactions(ctx, e.srv.Subscriptions()[0].ID, opt)
				}
			},
			[]string{"tran_date"}, // interface §2.5
		},
	} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.client = e.merchant
			_, err := test.prepare(t.Context(), e)
			require.NoError(t, err)
			wanted := slices.Clone(test.besides)
			for name, property := range c.schema(t, schema).Value.Properties {
				if kind := schemaKind(property.Value); kind != "array" && kind != "object" {
					wanted = append(wanted, name)
				}
			}
			sorts := func(name string) bool {
				_, err := test.list(e, &payvault.ListOptions{OrderOn: name})(t.Context(), e)
				return err == nil
			}
			failList(t, "the emulator does not sort by the property", slices.DeleteFunc(slices.Clone(wanted), sorts))
			var others []string
			for name := range emulatorSource(t).literals {
				if name != "" && !slices.Contains(wanted, name) && sorts(name) {
					others = append(others, name)
				}
			}
			failList(t, "the emulator sorts by what is not a property of "+schema, others)

			for name, value := range firstRecord(t, test.list(e, nil), e) {
				if !slices.Contains(wanted, name) || value == "" {
					continue
				}
				filter := payvault.Where(name, "EQUALS", fmt.Sprint(value))
				_, err := test.list(e, &payvault.ListOptions{Filters: []payvault.Filter{filter}})(t.Context(), e)
				require.NoError(t, err, name)
				assert.NotEqual(t, json.Number("0"), lastAnswer(t, e)["totalRecords"], "no record has the %s of the first one", name)
			}
		})
	}
}

// firstRecord is the first record of a list as it was on the wire.
func firstRecord(t *testing.T, list call, e *env) map[string]any {
	t.Helper()
	_, err := list(t.Context(), e)
	require.NoError(t, err)
	records, _ := lastAnswer(t, e)["data"].([]any)
	require.NotEmpty(t, records)
	record, _ := records[0].(map[string]any)
	return record
}

func lastAnswer(t *testing.T, e *env) map[string]any {
	t.Helper()
	all := e.wire.all()
	answer, _ := exactJSON(t, all[len(all)-1].received).(map[string]any)
	return answer
}
