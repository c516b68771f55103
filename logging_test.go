package payvault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// record is a log record but for its time, its duration and the text of its error.
type record map[string]any

// logged makes one call of an emulator with a logger and returns the records from a level on.
func logged(t *testing.T, from slog.Level, fault *payvaulttest.Fault, call func(ctx context.Context, c *payvault.Client) error) []record {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	if fault != nil {
		inject(t, srv, *fault)
	}
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: from}))
	_ = call(t.Context(), srv.Client(payvault.WithLogger(logger), impatient(2)))
	var records []record
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var r record
		require.NoError(t, decoder.Decode(&r))
		assert.Positive(t, r["duration"])
		assert.Equal(t, r["error_class"] == nil, r["error"] == nil)
		for _, key := range []string{slog.TimeKey, "duration", "error"} {
			delete(r, key)
		}
		records = append(records, r)
	}
	return records
}

// entry is a record of one attempt or call.
func entry(level, message string, op payvault.Operation, status int, code string, attempts int, delivery string) record {
	return record{
		slog.LevelKey: level, slog.MessageKey: message, "operation": string(op), "status": float64(status), "code": code,
		"attempts": float64(attempts), "delivery": delivery,
	}
}

func (r record) with(class string) record {
	r["error_class"] = class
	return r
}

func list(ctx context.Context, c *payvault.Client) error {
	_, err := c.Customers.List(ctx, nil)
	return err
}

func submit(ctx context.Context, c *payvault.Client) error {
	_, err := c.AccountUpdater.Submit(ctx, minimalCards())
	return err
}

const (
	attemptLogged = "payvault attempt"
	callLogged    = "payvault call"
)

func TestLogger(t *testing.T) {
	t.Parallel()
	const listing, submission = payvault.OpCustomersList, payvault.OpAccountUpdaterSubmit
	tests := map[string]struct {
		fault *payvaulttest.Fault
		call  func(ctx context.Context, c *payvault.Client) error
		want  []record
	}{
		"success": {nil, list, []record{
			entry("DEBUG", attemptLogged, listing, 200, "", 1, "answered"),
			entry("DEBUG", callLogged, listing, 200, "0", 1, "answered"),
		}},
		"success after a retry": {
			&payvaulttest.Fault{Operation: listing, Kind: payvaulttest.DropBeforeCommit, Times: 1}, list,
			[]record{
				entry("DEBUG", attemptLogged, listing, 0, "", 1, "unknown").with("connection"),
				entry("DEBUG", attemptLogged, listing, 200, "", 2, "answered"),
				entry("DEBUG", callLogged, listing, 200, "0", 2, "answered"),
			},
		},
		"turned away": {&payvaulttest.Fault{Kind: payvaulttest.RateLimit}, submit, []record{
			entry("DEBUG", attemptLogged, submission, 429, "", 1, "answered"),
			entry("DEBUG", attemptLogged, submission, 429, "", 2, "answered"),
			entry("WARN", callLogged, submission, 429, "429", 2, "answered").with("rejected"),
		}},
		"rejected": {
			&payvaulttest.Fault{Operation: submission, Kind: payvaulttest.OtherCode, Code: 7}, submit,
			[]record{
				entry("DEBUG", attemptLogged, submission, 200, "", 1, "answered"),
				entry("WARN", callLogged, submission, 200, "7", 1, "answered").with("rejected"),
			},
		},
		"outcome unknown": {
			&payvaulttest.Fault{Operation: submission, Kind: payvaulttest.DropAfterCommit}, submit,
			[]record{
				entry("DEBUG", attemptLogged, submission, 0, "", 1, "unknown").with("connection"),
				entry("ERROR", callLogged, submission, 0, "", 1, "unknown").with("connection"),
			},
		},
		"not sent": {nil, func(ctx context.Context, c *payvault.Client) error {
			_, err := c.AccountUpdater.Submit(ctx, nil)
			return err
		}, []record{
			entry("WARN", callLogged, submission, 0, "", 0, "not sent").with("invalid_request"),
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, logged(t, slog.LevelDebug, test.fault, test.call))
		})
	}
}

// TestLogger_levels: at Info nothing is logged of what goes well.
func TestLogger_levels(t *testing.T) {
	t.Parallel()
	assert.Empty(t, logged(t, slog.LevelInfo, nil, list))
	lost := &payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit}
	assert.Len(t, logged(t, slog.LevelInfo, lost, submit), 1)
	assert.Empty(t, logged(t, slog.LevelError, &payvaulttest.Fault{Kind: payvaulttest.RateLimit}, submit))
}

// TestLogger_seesTheContextOfObservers: a handler that adds the IDs of a trace finds them.
func TestLogger_seesTheContextOfObservers(t *testing.T) {
	t.Parallel()
	var d diary
	seen := &contextHandler{Handler: slog.DiscardHandler, diary: &d}
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	client := srv.Client(payvault.WithObserver(d.observer()), payvault.WithLogger(slog.New(seen)))
	require.NoError(t, list(t.Context(), client))
	assert.Equal(t, 2, seen.open, "attempt and call, both while the observer's call is open")
}

// contextHandler counts records of calls that a diary knows and whose end it has not been told.
type contextHandler struct {
	slog.Handler

	diary *diary
	open  int
}

func (*contextHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *contextHandler) Handle(ctx context.Context, _ slog.Record) error {
	if entry := h.diary.entry(ctx); entry != nil && len(entry.end) == 0 {
		h.open++
	}
	return nil
}
