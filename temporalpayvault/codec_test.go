package temporalpayvault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/protobuf/proto"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const number = "4111111111111111"

func key(b byte) []byte { return bytes.Repeat([]byte{b}, keyBytes) }

func newCodec(t *testing.T, current string, ids ...string) converter.PayloadCodec {
	t.Helper()
	keys := map[string][]byte{}
	for _, id := range ids {
		keys[id] = key(id[0])
	}
	c, err := NewCodec(current, keys)
	require.NoError(t, err)
	return c
}

// TestNewCodec_refuses checks that NewCodec returns an error for a short key and for an unknown current key.
func TestNewCodec_refuses(t *testing.T) {
	t.Parallel()
	_, err := NewCodec("a", map[string][]byte{"a": key('a')[1:]})
	require.ErrorContains(t, err, `"a" has 31 bytes`)
	_, err = NewCodec("b", map[string][]byte{"a": key('a')})
	require.ErrorContains(t, err, `no key "b"`)
}

// TestCodec_rotation checks that a codec with two keys encrypts with the current key, and decrypts with both keys. The
// codec leaves a nil value unencrypted, and refuses payloads that were changed.
func TestCodec_rotation(t *testing.T) {
	t.Parallel()
	p := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"` + number + `"`)}
	before, err := newCodec(t, "a", "a").Encode([]*commonpb.Payload{p})
	require.NoError(t, err)
	assert.NotContains(t, before[0].String(), number)
	assert.NotContains(t, before[0].String(), "json")

	both := newCodec(t, "b", "a", "b")
	after, err := both.Encode([]*commonpb.Payload{p})
	require.NoError(t, err)
	assert.Equal(t, "b", string(after[0].GetMetadata()[metadataKeyID]))
	plain, err := both.Decode([]*commonpb.Payload{before[0], after[0], p})
	require.NoError(t, err)
	for _, got := range plain {
		assert.True(t, proto.Equal(p, got))
	}

	none, err := converter.NewNilPayloadConverter().ToPayload(nil)
	require.NoError(t, err)
	kept, err := both.Encode([]*commonpb.Payload{none})
	require.NoError(t, err)
	assert.True(t, proto.Equal(none, kept[0]), "the server can read a nil, and removes a key of the memo for it")

	_, err = newCodec(t, "a", "a").Decode(after)
	require.ErrorContains(t, err, `no key "b"`)
	after[0].Metadata[metadataKeyID] = []byte("a")
	_, err = both.Decode(after)
	require.Error(t, err, "the key of another ID")
	before[0].Data[20] ^= 1
	_, err = both.Decode(before)
	require.Error(t, err, "changed")
}

// envelope stands for a type that a user defines. Its fields are of several kinds that can contain a secret.
type envelope struct {
	Name  string
	Cards []payvault.AccountUpdaterCard
	Any   any
	Map   map[string]*payvault.Secret
}

// TestNewConverters checks that a value with a secret is encrypted if the codec encrypts, and refused if it does not.
// In the details of a failure, a converter without encryption writes [REDACTED] instead of refusing the value.
func TestNewConverters(t *testing.T) {
	t.Parallel()
	secret := payvault.NewSecret(number)
	card := payvault.AccountUpdaterCard{CardNumber: secret, ExpDate: "1230"}
	sealed, _ := NewConverters(newCodec(t, "a", "a"))
	open, openFailures := NewConverters(nil)
	reads, readsFailures := NewConverters(newCodec(t, "", "a"))
	for name, value := range map[string]any{
		"itself":   secret,
		"request":  card,
		"pointer":  &card,
		"slice":    envelope{Cards: []payvault.AccountUpdaterCard{card}},
		"any":      envelope{Any: secret},
		"map":      envelope{Map: map[string]*payvault.Secret{"k": &secret}},
		"key":      map[payvault.Secret]int{secret: 1},
		"nested":   map[string][]any{"x": {1, card}},
		"embedded": struct{ envelope }{envelope{Any: secret}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, data := range []converter.DataConverter{open, reads} {
				_, err := data.ToPayload(value)
				require.ErrorContains(t, err, "codec")
				assert.NotContains(t, err.Error(), number)
			}
			// A failure with a secret in its details is still reported, with its type.
			failed := temporal.NewNonRetryableApplicationError("bad", "T", errCut, value, 7)
			for _, failures := range []converter.FailureConverter{openFailures, readsFailures} {
				failure := failures.ErrorToFailure(failed)
				assert.Equal(t, "bad", failure.GetMessage(), "it is in clear")
				var app *temporal.ApplicationError
				require.ErrorAs(t, failures.FailureToError(failure), &app)
				assert.Equal(t, []any{"bad", "T", true}, []any{app.Message(), app.Type(), app.NonRetryable()})
				var details json.RawMessage
				var seven int
				require.NoError(t, app.Details(&details, &seven))
				assert.Contains(t, string(details), "[REDACTED]")
				assert.NotContains(t, string(details), number)
				assert.Equal(t, 7, seven)
			}
			p, err := sealed.ToPayload(value)
			require.NoError(t, err)
			raw, err := proto.Marshal(p)
			require.NoError(t, err)
			assert.NotContains(t, string(raw), number)
			var back json.RawMessage
			require.NoError(t, sealed.FromPayload(p, &back))
			assert.Contains(t, string(back), number)
		})
	}
}

// TestNewConverters_readBack checks that encrypted values can be read back, even by a codec that only decrypts. A value
// without a secret passes every converter.
func TestNewConverters_readBack(t *testing.T) {
	t.Parallel()
	sealed, _ := NewConverters(newCodec(t, "a", "a"))
	open, _ := NewConverters(nil)
	reads, _ := NewConverters(newCodec(t, "", "a"))
	p, err := sealed.ToPayload(payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(number), ExpDate: "1230"})
	require.NoError(t, err)
	var back payvault.AccountUpdaterCard
	require.NoError(t, sealed.FromPayload(p, &back))
	assert.Equal(t, number, back.CardNumber.Reveal())

	p, err = sealed.ToPayload("before")
	require.NoError(t, err)
	var before string
	require.NoError(t, reads.FromPayload(p, &before), "what others have encrypted")
	for _, c := range []converter.DataConverter{open, reads, sealed} {
		p, err := c.ToPayload(payvault.AccountUpdaterCard{CardID: "c"})
		require.NoError(t, err)
		require.NoError(t, c.FromPayload(p, &back))
		assert.Equal(t, "c", back.CardID)
		assert.True(t, back.CardNumber.IsZero())
	}
}

// TestNewConverters_failures checks that the texts of a failure are encrypted, and can be read back.
func TestNewConverters_failures(t *testing.T) {
	t.Parallel()
	_, failures := NewConverters(newCodec(t, "a", "a"))
	failure := failures.ErrorToFailure(fmt.Errorf("about %s: %w", number,
		temporal.NewApplicationError("bad "+number, "T", number)))
	raw, err := proto.Marshal(failure)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), number)
	assert.ErrorContains(t, failures.FailureToError(failure), number)
}

// wrapped is a codec of another type than the result of NewCodec.
type wrapped struct{ converter.PayloadCodec }

// TestNewConverters_otherCodecs checks codecs that NewCodec did not make: the text of a Secret passes only if the codec
// encrypts.
func TestNewConverters_otherCodecs(t *testing.T) {
	t.Parallel()
	secret := payvault.NewSecret(number)
	for name, test := range map[string]struct {
		codec    converter.PayloadCodec
		encrypts bool
	}{
		"zlib":       {converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}), false},
		"reads only": {wrapped{newCodec(t, "", "a")}, false},
		"encrypts":   {wrapped{newCodec(t, "a", "a")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, failures := NewConverters(test.codec)
			_, err := data.ToPayload(secret)
			assert.Equal(t, test.encrypts, err == nil, err)
			err = failures.FailureToError(failures.ErrorToFailure(temporal.NewApplicationError("bad", "T", secret)))
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			var details string
			require.NoError(t, app.Details(&details))
			assert.Equal(t, test.encrypts, details == number, details)
		})
	}
}

// tap is a converter that records all payloads that it makes. A logger can also write its records to a tap.
type tap struct {
	converter.DataConverter

	mu   *sync.Mutex
	seen *bytes.Buffer
}

func (c tap) ToPayload(v any) (*commonpb.Payload, error) {
	p, err := c.DataConverter.ToPayload(v)
	c.keep(p)
	return p, err
}

func (c tap) ToPayloads(vs ...any) (*commonpb.Payloads, error) {
	ps, err := c.DataConverter.ToPayloads(vs...)
	for _, p := range ps.GetPayloads() {
		c.keep(p)
	}
	return ps, err
}

func (c tap) keep(p *commonpb.Payload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Write(p.GetData())
}

func (c tap) Write(logged []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.Write(logged)
}

// tapped returns a test environment for workflows, and a tap. The tap records all payloads, failures and log records of
// the environment.
func tapped(a *Activities) (*testsuite.TestWorkflowEnvironment, tap) {
	seen := tap{converter.GetDefaultDataConverter(), &sync.Mutex{}, &bytes.Buffer{}}
	all := slog.NewTextHandler(seen, &slog.HandlerOptions{Level: slog.LevelDebug})
	env := loggedWorkflows(a, log.NewStructuredLogger(slog.New(all)))
	env.SetDataConverter(seen)
	env.SetFailureConverter(temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: seen, EncodeCommonAttributes: true,
	}))
	return env, seen
}

// TestSubmitCards_secrets checks that no payload, failure or log record has a card number, although error texts of the
// service and of the source have card numbers.
func TestSubmitCards_secrets(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 5000}
	for i := range 3 {
		inject(t, srv, payvaulttest.Fault{
			Operation: op, Kind: payvaulttest.OtherCode, Code: 2, Times: 1,
			Message: fmt.Sprintf("card 4111 1111 0000 000%d of 41111111%08d is bad", i, i),
		})
	}
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.RateLimit, RetryAfter: "7200", Times: 1})
	var calls atomic.Int64
	env, seen := tapped(newActivities(srv, source{deck: d, cards: func(context.Context) error {
		switch calls.Add(1) {
		case 1:
			return errors.New("after 4111111100000001")
		case 2:
			panic("after 4111111100000002")
		}
		return nil
	}}))
	job := d.job()
	job.BatchesPerActivity = 10
	env.ExecuteWorkflow(SubmitCards, job)
	assert.Equal(t, 3, result[Summary](t, env).Refused)
	text := seen.seen.String()
	assert.Contains(t, text, "the source of cards has failed")
	assert.Contains(t, text, "is bad")
	assert.Contains(t, text, `level=ERROR msg="Activity error."`)
	for _, secret := range []string{"41111111", "4111 1111", "c-1"} {
		assert.NotContains(t, text, secret)
	}
}
