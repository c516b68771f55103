package payvaulttest_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// TestOnlyTheEmulatorLinksTheValidator checks that programs that import only the SDK link neither the validator nor a
// YAML parser.
func TestOnlyTheEmulatorLinksTheValidator(t *testing.T) {
	t.Parallel()
	for pkg, wanted := range map[string]bool{"example.com/payvault": false, "example.com/payvault/payvaulttest": true} {
		list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output() //nolint:gosec // one of two names
		require.NoError(t, err)
		for _, module := range []string{
			"github.com/santhosh-tekuri/jsonschema", "golang.org/x/text", "go.yaml.in/yaml", "example.com/payvault/api",
		} {
			assert.Equal(t, wanted, strings.Contains("\n"+string(list), "\n"+module), "%s in %s", module, pkg)
		}
	}
}

// TestExamplesOfTheDocument checks that an example of the document works for every operation, on a server with the seed
// of the program.
func TestExamplesOfTheDocument(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../cmd/payvault-emulator/seed.json")
	require.NoError(t, err)
	seed, err := payvaulttest.LoadSeed(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	text, err := os.ReadFile("../api/openapi.yaml")
	require.NoError(t, err)
	document := openapi.MustLoad(text)
	for _, o := range document.Operations {
		place := []string{"paths", o.Path, strings.ToLower(o.Method)}
		path := o.Path
		parameters, _ := document.At(place...)["parameters"].([]any)
		for _, one := range parameters {
			parameter, _ := one.(map[string]any)
			if ref, ok := parameter["$ref"].(string); ok {
				parameter = document.At(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
			path = strings.ReplaceAll(path, fmt.Sprintf("{%v}", parameter["name"]), fmt.Sprint(parameter["example"]))
		}
		examples := document.At(append(place, "requestBody", "content", o.Media, "examples")...)
		if examples == nil {
			examples = map[string]any{"no body": nil}
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, payvaulttest.WithSeed(seed))
			var answers []string
			for _, example := range examples {
				value, _ := example.(map[string]any)
				answers = append(answers, a.sendExample(t, o, path, value["value"]).body,
					a.partner().sendExample(t, o, path, value["value"]).body)
			}
			assert.NotZero(t, a.srv.Commits(payvault.Operation(o.ID)),
				"no example works with cmd/payvault-emulator/seed.json: %q", answers)
		})
	}
}

// sendExample sends a request with this example as its body.
func (a api) sendExample(t *testing.T, o *openapi.Operation, path string, example any) reply {
	t.Helper()
	switch o.Media {
	case openapi.JSON:
		body, err := json.Marshal(example)
		require.NoError(t, err)
		return a.do(t, o.Method, path, string(body))
	case openapi.Form:
		f := newForm()
		parts, _ := example.(map[string]any)
		for name, content := range parts {
			f.part(t, name, map[string]string{"file": "a.pdf"}[name], fmt.Sprint(content))
		}
		return a.sendForm(t, o.Method, path, f)
	default:
		return a.do(t, o.Method, path, "")
	}
}

// TestLiberalRequests checks that the emulator accepts requests that the interface does not forbid.
func TestLiberalRequests(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.request(t, http.MethodGet, "/platform/vault/customer", "")
	r.Header.Del("Accept")
	assert.Equal(t, http.StatusOK, a.send(t, r).status)

	a.post(t, "/platform/aus/add", `{"data":[]}`).ok(t)
	data := a.post(t, "/platform/vault/customer", `{"auto_generate_customer_id":true,"customer_firm_name":"F",
		"shipping_addresses":[{}],"billing_cards":[{"tr_number":"011000015","dda_number":"1"}]}`).ok(t)
	for _, list := range []string{"shipping_addresses", "billing_cards"} {
		records, _ := data[list].([]any)
		require.Len(t, records, 1)
		record, _ := records[0].(map[string]any)
		assert.Equal(t, true, record["primary"], "the only one of %s is the primary one", list)
	}
	assert.NotContains(t, data, "primary_card_number", "an ACH account has none")
}

// TestPermittedRate checks that PermitRate refuses requests of its operation above the rate, and no other requests.
func TestPermittedRate(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	inject(t, a.srv, payvaulttest.Fault{
		Kind: payvaulttest.PermitRate, Operation: payvault.OpCustomersList, Rate: 0.001,
		RetryAfter: "9",
	})
	assert.Equal(t, http.StatusOK, a.get(t, "/platform/vault/customer").status)
	for range 3 {
		got := a.get(t, "/platform/vault/customer")
		assert.Equal(t, http.StatusTooManyRequests, got.status)
		assert.Equal(t, "9", got.header.Get("Retry-After"))
	}
	assert.Equal(t, 3, a.srv.Faults()[0].Struck)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpCustomersList))
	a.post(t, sendPath, "").ok(t)
}

// TestClientRetriesQuickly checks that the emulator's client waits only milliseconds and has no retry budget, unless
// its options say otherwise.
func TestClientRetriesQuickly(t *testing.T) {
	t.Parallel()
	const (
		callCount       = 50
		attemptsPerCall = 4
		mostWait        = 10 * time.Millisecond
	)
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	for _, status := range []failing{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			retry := func(opts ...payvault.Option) (attempts int, took time.Duration) {
				over := payvault.WithHTTPClient(&http.Client{Transport: status})
				began, client := time.Now(), srv.Client(append(opts, over)...)
				for range callCount {
					var resp payvault.Response
					_, err := client.Customers.List(t.Context(), nil, payvault.WithResponse(&resp))
					require.Error(t, err)
					attempts += resp.Attempts
				}
				return attempts, time.Since(began)
			}
			attempts, took := retry()
			assert.Equal(t, callCount*attemptsPerCall, attempts, "no retry budget")
			assert.LessOrEqual(t, took, callCount*(attemptsPerCall-1)*mostWait)

			attempts, took = retry(payvault.WithRetryPolicy(payvault.RetryPolicy{}))
			assert.Greater(t, took, 10*time.Second, "the default policy waits seconds")
			isWithoutBudget := attempts == callCount*attemptsPerCall
			assert.Equal(t, status == http.StatusTooManyRequests, isWithoutBudget, "a 429 costs nothing, a 503 does")
		})
	}
}

// failing is a RoundTripper that always answers with this status.
type failing int

func (f failing) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(f), Header: http.Header{}, Body: http.NoBody}, nil
}

// TestFaultsAreListed checks that Faults lists the armed faults with their counts, until they are spent or removed.
func TestFaultsAreListed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	twice := payvaulttest.Fault{Kind: payvaulttest.Respond, Operation: payvault.OpCustomersList, Times: 2}
	inject(t, a.srv, twice)
	always := payvaulttest.Fault{Kind: payvaulttest.Hang, Operation: payvault.OpInvoicesSend}
	remove := inject(t, a.srv, always)
	a.get(t, "/platform/vault/customer")
	assert.Equal(t, []payvaulttest.ArmedFault{
		{Fault: twice, Struck: 1, Left: 1}, {Fault: always, Left: -1},
	}, a.srv.Faults())
	a.get(t, "/platform/vault/customer")
	remove()
	assert.Empty(t, a.srv.Faults())
}

// TestShapeIsCheckedByTheDocument checks that a wrong value is named by its path and not repeated.
func TestShapeIsCheckedByTheDocument(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const number = "4111111111111111"
	for body, field := range map[string]string{
		`{"auto_generate_customer_id":"` + number + `"}`:                      "auto_generate_customer_id",
		`{"customer_id":"` + number + ` "}`:                                   "customer_id",
		`{"billing_cards":[{"card_id":"A"},{"exp_date":"` + number + `"}]}`:   "billing_cards[1].exp_date",
		`{"billing_cards":[{"card_number":` + number + `}]}`:                  "billing_cards[0].card_number",
		`{"billing_cards":[{"card_nummer":"` + number + `"}]}`:                "billing_cards[0].card_nummer",
		`{"merchant_id":` + number + number + `}`:                             "merchant_id",
		`{"billing_cards":[{"exp_date":"0129","exp_date":"` + number + `"}]}`: "billing_cards[0].exp_date",
	} {
		got := a.post(t, "/platform/vault/customer", body)
		got.refused(t, http.StatusBadRequest, field)
		assert.NotContains(t, got.body, number)
	}
}
