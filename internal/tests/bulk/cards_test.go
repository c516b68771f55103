package bulk

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestSubmitAllOfInvalidCards checks that SubmitAll reports each card that cannot be sent, and sends the other cards of
// its batch. A batch without a valid card is neither sent nor recorded in the journal.
func TestSubmitAllOfInvalidCards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cards := newCards(450)
		bad := []int{3, 99, 200, 449}
		for i := 300; i < 400; i++ {
			bad = append(bad, i)
		}
		for _, i := range bad {
			cards[i].ExpDate = "1329"
		}
		for i := 42; i < 400; i++ { // the first cards and the last batch have no Ref
			cards[i].Ref = fmt.Sprint("line ", i)
		}
		j, s := newJournal(t, nil), &fake{}
		check := func(fromJournal bool) {
			t.Helper()
			got := complete(t, s.submitAll(t, payvault.Cards(cards...), j.options(2)))
			require.Len(t, got, 5)
			var named []int
			var refs []string
			for i, b := range got {
				assert.Equal(t, []int{i, i * 100, min(450, i*100+100)}, []int{b.Index, b.Start, b.End})
				assert.Equal(t, i == 4, b.Refs == nil)
				refs = append(refs, b.Refs...)
				for _, invalid := range b.Invalid {
					named = append(named, invalid.Position)
					assert.Equal(t, cards[invalid.Position].Ref, invalid.Ref)
					service.AssertMatches(t, invalid.Err, payvault.ErrInvalidRequest)
				}
				if i == 3 {
					service.AssertMatches(t, b.Err, payvault.ErrInvalidRequest)
					assert.Equal(t, payvault.BatchNotSent, b.Status)
					continue
				}
				require.NoError(t, b.Err)
				assert.Equal(t, payvault.BatchAccepted, b.Status)
				assert.Equal(t, fromJournal, b.FromJournal)
			}
			assert.ElementsMatch(t, bad, named)
			require.Len(t, refs, 400)
			for i, ref := range refs {
				assert.Equal(t, cards[i].Ref, ref)
			}
			assert.NotContains(t, j.known, 3)
		}
		check(false)
		check(true)
		for i, n := range map[int]int{0: 98, 1: 100, 2: 99, 4: 49} {
			assert.Equal(t, n, j.outcome(i).Cards, "the cards that were sent")
		}
		s.assertSent(t, 0, 3, 4, 99, 100, 200, 201, 300, 400, 449)
	})
}

// TestPosition checks that Position turns the position of a card in a request into its position in the stream. Cards
// that cannot be sent are not in the request.
func TestPosition(t *testing.T) {
	t.Parallel()
	cards := newCards(200)
	for _, i := range []int{100, 101, 105, 199} {
		cards[i] = card{}
	}
	body := `{"code":2,"message":"Invalid","data":{"data[0].exp_date":["is past"],"data[3].exp_date":["is past"]}}`
	for b, err := range (&fake{answer: gives(http.StatusOK, body, 1)}).submitAll(t, payvault.Cards(cards...), nil) {
		require.NoError(t, err)
		if b.Index == 1 {
			assert.Len(t, service.AsError(t, b.Err).Fields, 2)
			assert.Equal(t, []int{102, 103, 104, 106, 107},
				[]int{b.Position(0), b.Position(1), b.Position(2), b.Position(3), b.Position(4)})
			assert.Equal(t, 198, b.Position(95), "the last one")
		} else {
			assert.Equal(t, 42, b.Position(42))
		}
	}
}

// TestJobName checks that JobName returns equal names for equal content, and different names for different content.
func TestJobName(t *testing.T) {
	t.Parallel()
	name := func(content string) string {
		name, err := payvault.JobName(strings.NewReader(content))
		require.NoError(t, err)
		return name
	}
	assert.Len(t, name("4111111111111111,1229\n"), 64)
	assert.Equal(t, name("4111111111111111,1229\n"), name("4111111111111111,1229\n"))
	assert.NotEqual(t, name("4111111111111111,1229\n"), name("4111111111111111,1230\n"))
	_, err := payvault.JobName(broken{})
	assert.ErrorIs(t, err, errDisk)
}

// broken is a file whose reads return some bytes and an error.
type broken struct{}

func (broken) Read(p []byte) (int, error) { return copy(p, "4111"), errDisk }
