// Package loggers tests that loggers and encoders outside the standard library do not show the secrets of package
// payvault.
package loggers

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/davecgh/go-spew/spew"
	"github.com/rs/zerolog"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.yaml.in/yaml/v3"

	"example.com/payvault"
	"example.com/payvault/internal/tests/canary"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writers returns functions that print a value with a logger, an encoder or a dumper. They may panic: yaml, for
// example, panics if the value contains a func.
func writers() map[string]func(w io.Writer, v any) {
	writeZap := func(w io.Writer, newEncoder func(zapcore.EncoderConfig) zapcore.Encoder, v any) {
		encoder := newEncoder(zap.NewDevelopmentEncoderConfig())
		logger := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(w), zap.DebugLevel))
		logger.Info("m", zap.Any("any", v), zap.Reflect("reflect", v), zap.Namespace("in"), zap.Any("group", v))
		logger.Sugar().With(zap.Any("with", v)).Infow("m", "value", v, "error", fmt.Errorf("%+v", v))
	}
	writeLogrus := func(w io.Writer, formatter logrus.Formatter, v any) {
		logger := &logrus.Logger{Out: w, Formatter: formatter, Level: logrus.InfoLevel}
		logger.WithField("value", v).WithFields(logrus.Fields{"more": v}).WithError(fmt.Errorf("%v", v)).Info(v)
	}
	writeZerolog := func(w io.Writer, v any) {
		logger := zerolog.New(w).With().Interface("with", v).Logger()
		logger.Info().Interface("interface", v).Any("any", v).Fields(map[string]any{"field": v}).Msgf("%+v", v)
		logger.Err(fmt.Errorf("%v", v)).Dict("in", zerolog.Dict().Interface("value", v)).Send()
	}
	dump := spew.ConfigState{Indent: " ", MaxDepth: 12}
	raw := spew.ConfigState{Indent: " ", MaxDepth: 12, DisableMethods: true}
	return map[string]func(w io.Writer, v any){
		"zap JSON":        func(w io.Writer, v any) { writeZap(w, zapcore.NewJSONEncoder, v) },
		"zap console":     func(w io.Writer, v any) { writeZap(w, zapcore.NewConsoleEncoder, v) },
		"logrus JSON":     func(w io.Writer, v any) { writeLogrus(w, &logrus.JSONFormatter{}, v) },
		"logrus text":     func(w io.Writer, v any) { writeLogrus(w, &logrus.TextFormatter{DisableQuote: true}, v) },
		"zerolog JSON":    writeZerolog,
		"zerolog console": func(w io.Writer, v any) { writeZerolog(zerolog.ConsoleWriter{Out: w, NoColor: true}, v) },
		"yaml": func(w io.Writer, v any) {
			text, err := yaml.Marshal(v)
			_, _ = fmt.Fprint(w, string(text), err)
		},
		"spew": func(w io.Writer, v any) {
			_, _ = dump.Fprintf(w, "%s %v %+v %#v %#+v", dump.Sdump(v), v, v, v, v)
		},
		"spew without methods": func(w io.Writer, v any) { raw.Fdump(w, v) },
		"a difference in testify": func(w io.Writer, v any) {
			assert.Equal(reporter{w}, struct{ V any }{v}, struct{ V any }{"other"})
			assert.Contains(reporter{w}, []any{v}, "other")
		},
	}
}

// reporter writes the text of a failed assertion to its Writer.
type reporter struct{ io.Writer }

func (r reporter) Errorf(format string, args ...any) { _, _ = fmt.Fprintf(r, format, args...) }

// shown returns what the function write prints for a value, and after it the value of a panic.
func shown(write func(w io.Writer, v any), v any) (text string) {
	var b bytes.Buffer
	defer func() { text = fmt.Sprint(b.String(), recover()) }()
	write(&b, v)
	return ""
}

// TestRedaction checks that no logger, encoder or dumper shows a secret in a value of an exported type. If the value is
// not inside an unexported field, loggers and encoders must not show its bodies, headers, files, paths, queries and
// filters either.
func TestRedaction(t *testing.T) {
	t.Parallel()
	secret, both := canary.Forms(canary.Secret), canary.Forms(canary.Secret, canary.Raw)
	canary.EachFilled(t, func(t *testing.T, typ string, pointer any) {
		t.Helper()
		isClient := typ == "Client" || strings.HasSuffix(typ, "Service")
		open, hidden := canary.Shapes(pointer)
		for how, write := range writers() {
			// Skip spew for a client, because a client has much of net/http in it. Skip logrus JSON for an observer, because
			// logrus would print an error of its own to standard error.
			if strings.HasPrefix(how, "spew") && isClient || how == "logrus JSON" && typ == "Observer" {
				continue
			}
			forms := both
			// spew and testify print fields by reflection
			if strings.HasPrefix(how, "spew") || how == "a difference in testify" {
				forms = secret
			}
			for shape, value := range open {
				text := shown(write, value)
				require.Empty(t, canary.Find(text, forms), "%s by %s: %.3000s", shape, how, text)
			}
			for shape, value := range hidden {
				text := shown(write, value)
				require.Empty(t, canary.Find(text, secret), "%s by %s: %.3000s", shape, how, text)
			}
		}
	})
}

// TestRedaction_shows checks that every writer prints values that are not secret. A writer that prints nothing passes
// TestRedaction, but not this test.
func TestRedaction_shows(t *testing.T) {
	t.Parallel()
	card := payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(canary.Secret), ExpDate: "1230"}
	for how, write := range writers() {
		text := shown(write, card)
		assert.Contains(t, text, "1230", how)
		// spew and testify print by reflection, and need not print [REDACTED]
		if !strings.HasPrefix(how, "spew") && how != "a difference in testify" {
			assert.Contains(t, text, "[REDACTED]", how)
		}
		assert.Contains(t, shown(write, struct{ Text string }{canary.Secret}), canary.Secret, how)
	}
}

// TestRead checks that a secret can be read from YAML, unless it is the text [REDACTED].
func TestRead(t *testing.T) {
	t.Parallel()
	var request struct{ Number payvault.Secret }
	require.NoError(t, yaml.Unmarshal([]byte("number: \"4111111111111111\"\n"), &request))
	assert.Equal(t, "4111111111111111", request.Number.Reveal())
	err := yaml.Unmarshal([]byte("number: '[REDACTED]'\n"), &request)
	require.ErrorContains(t, err, "a redacted secret, whose text is lost")
}

// TestValues checks that amounts and dates are written to YAML as texts and read back unchanged.
func TestValues(t *testing.T) {
	t.Parallel()
	type record struct {
		Amount payvault.Amount
		Date   payvault.Date
		None   payvault.Date
	}
	in := record{Amount: payvault.MustParseAmount("12.50"), Date: payvault.Date{Year: 2026, Month: time.March, Day: 14}}
	text, err := yaml.Marshal(in)
	require.NoError(t, err)
	assert.Equal(t, "amount: \"12.50\"\ndate: \"2026-03-14\"\nnone: \"\"\n", string(text))
	var out record
	require.NoError(t, yaml.Unmarshal(text, &out))
	assert.Equal(t, in, out)
	require.NoError(t, yaml.Unmarshal([]byte("amount: 12.50\ndate: 2026-03-14\n"), &out), "as people write it")
	assert.Equal(t, in, out)
}
