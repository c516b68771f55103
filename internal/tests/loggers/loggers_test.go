// Package loggers holds the secrets of package payvault against the loggers and encoders that Go programs use besides
// those of the standard library.
package loggers

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

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

// writers are the ways in which a program shows a value. They may panic, as yaml does for functions.
func writers() map[string]func(w io.Writer, v any) {
	writeZap := func(newEncoder func(zapcore.EncoderConfig) zapcore.Encoder) func(w io.Writer, v any) {
		return func(w io.Writer, v any) {
			encoder := newEncoder(zap.NewDevelopmentEncoderConfig())
			logger := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(w), zap.DebugLevel))
			logger.Info("m", zap.Any("any", v), zap.Reflect("reflect", v), zap.Namespace("in"), zap.Any("group", v))
			logger.Sugar().Infow("m", "value", v)
			logger.With(zap.Any("with", v)).Info("m", zap.Error(fmt.Errorf("%+v", v)))
		}
	}
	writeLogrus := func(formatter logrus.Formatter) func(w io.Writer, v any) {
		return func(w io.Writer, v any) {
			logger := &logrus.Logger{Out: w, Formatter: formatter, Level: logrus.InfoLevel}
			logger.WithField("value", v).WithFields(logrus.Fields{"more": v}).WithError(fmt.Errorf("%v", v)).Info(v)
		}
	}
	writeZerolog := func(w io.Writer, v any) {
		logger := zerolog.New(w).With().Interface("with", v).Logger()
		logger.Info().Interface("interface", v).Any("any", v).Fields(map[string]any{"field": v}).Msgf("%+v", v)
		logger.Err(fmt.Errorf("%v", v)).Dict("in", zerolog.Dict().Interface("value", v)).Send()
	}
	return map[string]func(w io.Writer, v any){
		"zap JSON":     writeZap(zapcore.NewJSONEncoder),
		"zap console":  writeZap(zapcore.NewConsoleEncoder),
		"logrus JSON":  writeLogrus(&logrus.JSONFormatter{}),
		"logrus text":  writeLogrus(&logrus.TextFormatter{DisableQuote: true}),
		"zerolog JSON": writeZerolog,
		"zerolog console": func(w io.Writer, v any) {
			writeZerolog(zerolog.ConsoleWriter{Out: w, NoColor: true}, v)
		},
		"yaml": func(w io.Writer, v any) {
			text, err := yaml.Marshal(v)
			_, _ = fmt.Fprint(w, string(text), err)
		},
		"spew": func(w io.Writer, v any) {
			config := spew.ConfigState{Indent: " ", MaxDepth: 12}
			config.Fdump(w, v)
			_, _ = config.Fprintf(w, "%v %+v %#v %#+v", v, v, v, v)
		},
		"spew without methods": func(w io.Writer, v any) {
			config := spew.ConfigState{Indent: " ", MaxDepth: 12, DisableMethods: true}
			config.Fdump(w, v)
		},
		"a difference in testify": func(w io.Writer, v any) {
			assert.Equal(reporter{w}, struct{ V any }{v}, struct{ V any }{"other"})
			assert.Contains(reporter{w}, []any{v}, "other")
		},
	}
}

// reporter keeps what a failed assertion prints.
type reporter struct{ io.Writer }

func (r reporter) Errorf(format string, args ...any) { _, _ = fmt.Fprintf(r, format, args...) }

// shown returns what a writer makes of a value.
func shown(write func(w io.Writer, v any), v any) string {
	var b bytes.Buffer
	func() {
		defer func() { _, _ = fmt.Fprint(&b, recover()) }()
		write(&b, v)
	}()
	return b.String()
}

// TestRedaction logs, encodes and dumps a filled value of every exported type, by itself and within other values.
func TestRedaction(t *testing.T) {
	t.Parallel()
	forms := canary.Forms(canary.Secret)
	canary.EachFilled(t, func(t *testing.T, typ string, pointer any) {
		t.Helper()
		open, hidden := canary.Shapes(pointer)
		for how, write := range writers() {
			for _, shapes := range []map[string]any{open, hidden} {
				for shape, value := range shapes {
					if !skips(how, typ) {
						text := shown(write, value)
						require.Empty(t, canary.Find(text, forms), "%s by %s: %.3000s", shape, how, text)
					}
				}
			}
		}
	})
}

// skips leaves out dumps of all of net/http, and what logrus would complain about on the standard error.
func skips(how, name string) bool {
	isClient := name == "Client" || strings.HasSuffix(name, "Service")
	return strings.HasPrefix(how, "spew") && isClient || how == "logrus JSON" && name == "Observer"
}

// TestRedaction_shows: what shows nothing at all would pass the test above.
func TestRedaction_shows(t *testing.T) {
	t.Parallel()
	card := payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(canary.Secret), ExpDate: "1230"}
	for how, write := range writers() {
		text := shown(write, card)
		assert.Contains(t, text, "1230", how)
		if !strings.HasPrefix(how, "spew") && how != "a difference in testify" { // which call other methods, or none
			assert.Contains(t, text, "[REDACTED]", how)
		}
		assert.Contains(t, shown(write, struct{ Text string }{canary.Secret}), canary.Secret, how)
	}
}

// TestRead: a secret is read from YAML too, and the mark is not.
func TestRead(t *testing.T) {
	t.Parallel()
	var request struct{ Number payvault.Secret }
	require.NoError(t, yaml.Unmarshal([]byte("number: \"4111111111111111\"\n"), &request))
	assert.Equal(t, "4111111111111111", request.Number.Reveal())
	text, err := yaml.Marshal(request)
	require.NoError(t, err)
	require.Equal(t, "number: '[REDACTED]'\n", string(text))
	require.ErrorContains(t, yaml.Unmarshal(text, &request), "a redacted secret, whose text is lost")
}
