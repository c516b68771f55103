package contract

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
)

// TestMutants changes one thing at a time in the fullest request of every operation. What the document refuses the
// emulator has to refuse, and what the document does not require, or just permits, the emulator has to take.
func TestMutants(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	words := slices.Sorted(maps.Keys(emulatorSource(t).literals)) // whatever it knows, it has to refuse in an enum
	for _, o := range allCalls(t) {
		t.Run(string(o.op), func(t *testing.T) {
			t.Parallel()
			hold := func() heldRequest { return holdRequest(t, c, string(o.op), o.full) }
			whole := hold()
			assert.Empty(t, c.checkRequest(whole.message(t, c)))
			for _, m := range mutantsOf(t, c, whole, words) {
				changed := whole.with(m)
				problems := c.checkRequest(changed.message(t, c))
				switch {
				case len(problems) > 0 && changed.accepted(t, c):
					t.Errorf("the emulator takes what the document refuses: %s (%s)", m.name, problems[0])
					whole = hold() // it is performed by now
				case len(problems) == 0 && m.permitted:
					took, own := hold().with(m).accepted(t, c), slices.Contains(ownChoices()[o.op], m.name)
					assert.True(t, took || own, "the emulator refuses what the document permits: %s", m.name)
					assert.False(t, took && own, "the emulator takes it, so it is no longer to be listed in ownChoices: %s", m.name)
				}
			}
			assert.True(t, whole.accepted(t, c), "the request itself is refused after its mutants")
		})
	}
}

// OwnChoices are mutants that the emulator refuses though the interface does not say that the field is required.
func ownChoices() map[payvault.Operation][]string {
	return map[payvault.Operation][]string{
		payvault.OpTokensTokenize: {"no .type_id", "no .tr_number", "no .dda_number"},
		payvault.OpCustomersCreate: {
			"no .billing_cards[0].type_id", "no .billing_cards[0].tr_number", "no .billing_cards[0].dda_number",
		},
		payvault.OpPayeesCreate:    {"no .payee_account.tr_number", "no .payee_account.dda_number"},
		payvault.OpDisputesRespond: {"no .cbr_response_type"},
	}
}
