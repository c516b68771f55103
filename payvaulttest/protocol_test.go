package payvaulttest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, path := range []string{
		"", "/", "/pg", "/pg/tokenize/", "/pg//tokenize", "/platform/../pg/tokenize", "/PG/tokenize",
		"/platform/vault/payee/",
		"/platform/invoice//send", "/platform/aus/add/x",
	} {
		a.post(t, path, newCard).refused(t, http.StatusNotFound)
	}
	r := a.request(t, http.MethodPost, "", newCard)
	r.URL.Path = "/pg/tokenize"
	a.send(t, r).refused(t, http.StatusNotFound)
	assert.Empty(t, a.srv.AllCommits())
}

func TestMethods(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	methods := map[string][]string{} // by path
	for _, o := range payvault.Operations() {
		methods[o.Path] = append(methods[o.Path], o.Method)
	}
	for path, known := range methods {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			got := a.do(t, method, strings.NewReplacer("{", "", "}", "").Replace(path), "")
			unknown := strings.Contains(got.body, "no operation has this method and path")
			assert.Equal(t, !slices.Contains(known, method), unknown, "%s %s: %s", method, path, got.body)
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, body := range map[string]string{
		"no JSON":          `card_number=4111111111111111`,
		"two values":       newCard + newCard,
		"garbage":          newCard + "x",
		"a bracket":        newCard + "}",
		"cut":              newCard[:len(newCard)-1],
		"an array":         `[` + newCard + `]`,
		"a text":           `"text"`,
		"null":             `null`,
		"invalid UTF-8":    "{\"merchant_id\":\"100001\",\"cardholder_name\":\"\xff\"}",
		"a trailing comma": `{"merchant_id":"100001",}`,
		"blanks":           "   ",
		"a deep well":      `{"echo_fields":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := a.post(t, "/pg/tokenize", body)
			assert.Equal(t, http.StatusBadRequest, got.status)
			assert.Equal(t, "400", got.object(t)["rcode"])
		})
	}
	a.post(t, payees, "\t{\"payee_name\": \"P\"} \r\n").ok(t)
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	padding := func(n int) string { return `{"payee_name":"` + strings.Repeat("x", n-17) + `"}` }
	a.post(t, payees, padding(1<<20+1)).refused(t, http.StatusRequestEntityTooLarge)
	a.post(t, payees, padding(1<<20)).ok(t)
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for contentType, status := range map[string]int{
		"application/json":                  http.StatusOK,
		"application/json; charset=utf-8":   http.StatusOK,
		"Application/JSON;charset=UTF-8":    http.StatusOK,
		"":                                  http.StatusUnsupportedMediaType,
		"text/plain":                        http.StatusUnsupportedMediaType,
		"application/x-www-form-urlencoded": http.StatusUnsupportedMediaType,
		"application/json;;":                http.StatusUnsupportedMediaType,
	} {
		r := a.request(t, http.MethodPost, payees, `{"payee_name":"P"}`)
		r.Header.Set("Content-Type", contentType)
		assert.Equal(t, status, a.send(t, r).status, contentType)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for accept, status := range map[string]int{
		"application/json":               http.StatusOK,
		"*/*":                            http.StatusOK,
		"text/html, application/*;q=0.5": http.StatusOK,
		"":                               http.StatusOK,
		"text/html":                      http.StatusOK,
	} {
		r := a.request(t, http.MethodGet, "/platform/vault/customer", "")
		r.Header.Set("Accept", accept)
		assert.Equal(t, status, a.send(t, r).status, accept)
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithTLS())
	assert.True(t, strings.HasPrefix(a.srv.URL, "https://127.0.0.1:"))
	a.post(t, "/pg/tokenize", newCard).tokenized(t)
	assert.Equal(t, "HTTP/2.0", a.srv.Requests()[0].Proto)
	_, err := http.DefaultClient.Do(a.request(t, http.MethodGet, "/", "")) //nolint:bodyclose // there is no answer
	require.Error(t, err, "no one else trusts it")
}

func TestIDs(t *testing.T) {
	t.Parallel()
	run := func(opts ...payvaulttest.Option) [3]any {
		a := newAPI(t, opts...)
		card := a.post(t, "/pg/tokenize", newCard).tokenized(t)
		payee := a.post(t, payees, `{"payee_name":"P"}`).ok(t)
		return [3]any{card["card_id"], card["pg_id"], payee["payee_id"]}
	}
	assert.Equal(t, run(), run())
	assert.Equal(t, run(payvaulttest.WithIDs(7)), run(payvaulttest.WithIDs(7)))
	assert.NotEqual(t, run(), run(payvaulttest.WithIDs(7)))
}

// The identifiers of a server are the same on each run, so a user may well have given one of them before.
func TestGeneratedIDsReplaceNothing(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		create func(t *testing.T, a api) string          // makes a record with a generated ID
		give   func(t *testing.T, a api, id string)      // makes a record with a given ID
		ids    func(t *testing.T, a api) (list []string) // of all records
	}{
		"customer": {
			func(t *testing.T, a api) string {
				t.Helper()
				id, _ := a.post(t, customers,
					`{"auto_generate_customer_id":true,"customer_firm_name":"F"}`).ok(t)["customer_id"].(string)
				return id
			},
			func(t *testing.T, a api, id string) {
				t.Helper()
				a.post(t, customers, `{"customer_id":"`+id+`","customer_firm_name":"F"}`).ok(t)
			},
			func(_ *testing.T, a api) (list []string) {
				for _, customer := range a.srv.Customers.All() {
					list = append(list, customer.ID)
				}
				return list
			},
		},
		"invoice": {
			func(_ *testing.T, a api) string { return string(a.srv.Invoices.Seed(payvaulttest.Invoice{}).ID) },
			func(_ *testing.T, a api, id string) {
				a.srv.Invoices.Seed(payvaulttest.Invoice{ID: payvault.InvoiceID(id)})
			},
			func(_ *testing.T, a api) (list []string) {
				for _, invoice := range a.srv.Invoices.All() {
					list = append(list, string(invoice.ID))
				}
				return list
			},
		},
		"dispute": {
			func(_ *testing.T, a api) string { return fmt.Sprint(a.srv.Disputes.Seed(payvaulttest.Dispute{}).ID) },
			func(t *testing.T, a api, id string) {
				t.Helper()
				a.srv.Disputes.Seed(payvaulttest.Dispute{ID: payvault.DisputeID(number(t, id))})
			},
			func(_ *testing.T, a api) (list []string) {
				for _, dispute := range a.srv.Disputes.All() {
					list = append(list, fmt.Sprint(dispute.ID))
				}
				return list
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken := test.create(t, newAPI(t))
			a := newAPI(t)
			test.give(t, a, taken)
			assert.NotEqual(t, taken, test.create(t, a))
			ids := test.ids(t, a)
			assert.Len(t, ids, 2)
			assert.Equal(t, taken, ids[0])
			assert.NotEqual(t, taken, ids[1])
		})
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// Applications are listed in order of creation, which is that of their IDs, however many come at once.
func TestOrderOfCreation(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	partner := a.partner()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { partner.post(t, "/platform/application/add", `{"channel_id":1,"sales_rep":1}`).ok(t) })
		all.Go(func() { a.post(t, payees, `{"payee_name":"P"}`).ok(t) })
	}
	all.Wait()
	applications, list := a.srv.Applications.All(), a.srv.Payees.All()
	require.Len(t, applications, 50)
	require.Len(t, list, 50)
	for i := range 49 {
		assert.Less(t, applications[i].ID, applications[i+1].ID)
		assert.Less(t, list[i].ID, list[i+1].ID)
	}
}

func TestMethodsOfTokenize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	got := a.get(t, "/pg/tokenize")
	assert.Equal(t, http.StatusNotFound, got.status)
	assert.JSONEq(t, `{"rcode":"404","rmsg":"no operation has this method and path"}`, got.body)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.RateLimit})
	assert.JSONEq(t, `{"rcode":"429","rmsg":"Too many requests"}`, a.get(t, "/pg/tokenize").body)
}
