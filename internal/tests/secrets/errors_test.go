package secrets

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// secretsOf are the texts of all secrets of a request that are long enough to look for.
func secretsOf(request any) (texts []string) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch {
		case v.Kind() == reflect.Invalid:
		case v.Type() == reflect.TypeFor[payvault.Secret]():
			if text := v.Interface().(payvault.Secret).Reveal(); len(text) > 4 {
				texts = append(texts, text)
			}
		case v.Kind() == reflect.Pointer:
			walk(v.Elem())
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(request))
	return texts
}

// marked are IDs to look for.
func marked() calls.IDs {
	return calls.IDs{
		Card: "CARD1", Payee: 827364501, Application: 827364502, Dispute: 827364503, Subscription: 827364504,
		Invoice: "invoice-5Kq0x", Webhook: "webhook-5Kq0x", Event: "event",
	}
}

// hidden is what must not be seen of a call.
func hidden(c *calls.Call) []string {
	return append(secretsOf(c.Full), service.APIKey, strings.TrimPrefix(service.BasicToken, "Basic "), "827364", "-5Kq0x")
}

// TestEcho: a service that repeats what it was sent, in every text that an error takes from it.
func TestEcho(t *testing.T) {
	t.Parallel()
	plain := strings.NewReplacer("{", "", "}", "", "[", "", "]", "", `"`, "", `\`, "") // what a code cannot contain
	type object = map[string]any
	answers := map[string]func(echo string) any{
		"message":        func(echo string) any { return object{"code": 7, "message": echo} },
		"rmsg":           func(echo string) any { return object{"rcode": "905", "rmsg": echo} },
		"data.message":   func(echo string) any { return object{"code": 7, "data": object{"message": echo}} },
		"code":           func(echo string) any { return object{"code": plain.Replace(echo), "message": "No"} },
		"rcode":          func(echo string) any { return object{"rcode": plain.Replace(echo)} },
		"fields":         func(echo string) any { return object{"code": 2, "data": object{"f": []string{"a", echo}}} },
		"a single field": func(echo string) any { return object{"code": 2, "data": object{"f": echo}} },
		"names of fields": func(echo string) any {
			return object{"code": 2, "data": object{echo: []string{"a"}, "f": []string{"b"}}}
		},
		"an object": func(echo string) any { return object{"code": 7, "message": object{echo: echo}} },
		"no JSON":   func(echo string) any { return nil },
		"cut off":   func(echo string) any { return json.RawMessage(nil) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var server *service.Server
			var status int
			server = service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
				echo := fmt.Sprintf("%s %s %s", server.Seen()[n-1].Body, r.Header.Get("Authorization"), r.URL.Path)
				text, err := json.Marshal(answer(echo))
				if err != nil || string(text) == "null" {
					text = []byte(map[bool]string{true: `{"code":0,"rcode":"000","data":"`, false: ""}[name == "cut off"] + echo)
				}
				w.Header().Set("Location", "/"+url.PathEscape(echo))
				service.Say(w, status, string(text))
			})
			for _, c := range calls.All() {
				for _, status = range []int{200, 307, 400, 422, 503} {
					client := service.Client(t, server.URL, service.Impatient(1))
					result, err := c.Do(t.Context(), client, marked(), c.Full)
					if _, asked := result.(*payvault.Validation); asked {
						assert.NotContains(t, fmt.Sprint(result), service.APIKey)
						continue // the problems that it asked for
					}
					service.AssertHidden(t, err, hidden(&c)...)
					if e := service.AsError(t, err); e.Code+e.Message+e.Detail+fmt.Sprint(e.Fields) != "map[]" {
						assert.Contains(t, fmt.Sprint(e.Code, e.Message, e.Detail, e.Fields), "[REDACTED]")
					}
				}
			}
		})
	}
}

// TestEchoOfWire: net/http quotes what it cannot read, here the request itself.
func TestEchoOfWire(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{
		"", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\nContent-Length: ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: ",
		"HTTP/1.1 200 OK\r\n\r\r",
	} {
		t.Run(strconv.Quote(prefix), func(t *testing.T) {
			t.Parallel()
			var server *service.Server
			server = service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				defer func() { _ = conn.Close() }()
				_, _ = fmt.Fprintf(conn, "%s%s %s %s %s\r\n\r\n",
					prefix, r.Header.Get("Authorization"), r.RequestURI, server.Seen()[n-1].Body, r.Method)
			})
			for _, c := range calls.All() {
				_, err := c.Do(t.Context(), service.Client(t, server.URL+"/quoted-path", service.Impatient(2)), marked(), c.Full)
				service.AssertHidden(t, err, append(hidden(&c), "quoted-path")...)
				assert.Equal(t, payvault.Unknown, service.AsError(t, err).Delivery)
			}
		})
	}
}

// TestHiddenURL: net/http wraps every failure in a *url.Error, with path and query.
func TestHiddenURL(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("quotes /quoted-path?q=1")
	client := service.Client(t, "http://127.0.0.1/quoted-path", service.Over(service.RoundTripper(
		func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: errOwn}
		})))
	for _, c := range calls.All() {
		_, err := c.Do(t.Context(), client, marked(), c.Full)
		service.AssertHidden(t, err, append(hidden(&c), "quoted-path")...)
		_, found := errors.AsType[*url.Error](err)
		assert.False(t, found, "errors.As must not dig it out")
		assert.ErrorIs(t, err, errOwn, "what the transport said can still be matched")
		assert.Contains(t, err.Error(), "connection failed")
	}
}

// TestNothingOfTheRequest: path, query, header and body of a call that the SDK does not type, and filters, under
// answers of all sorts.
func TestNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	const canary = "canary-4f2a"
	filters := []payvault.Filter{payvault.Where("f", "EQ", canary)}
	made := map[string]func(c *payvault.Client, opts ...payvault.CallOption) error{
		"list": func(c *payvault.Client, opts ...payvault.CallOption) error {
			_, err := c.Customers.List(t.Context(), &payvault.ListOptions{OrderOn: canary, Filters: filters}, opts...)
			return err
		},
		"typed": func(c *payvault.Client, opts ...payvault.CallOption) error {
			return c.Invoices.Send(t.Context(), canary, &payvault.InvoiceSendRequest{EmailAddress: []string{canary}}, opts...)
		},
		"Call": func(c *payvault.Client, opts ...payvault.CallOption) error {
			return c.Call(t.Context(), payvault.Request{
				Method: "PATCH", Path: []string{canary, "x"}, Query: url.Values{canary: {canary}},
				Body: map[string]string{canary: canary},
			}, nil, opts...)
		},
	}
	for name, call := range made {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range []string{
				"", canary, `"` + canary, `{"` + canary + `":` + canary, `{"code":{"` + canary + `":1}}`, "<html>" + canary,
				`{"code":0,"data":"` + canary + `","totalPages":"` + canary + `"}`,
			} {
				for _, status := range []int{200, 302, 404, 503} {
					server := service.Observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("X-Canary", canary)
						service.Say(w, status, text)
					})
					if err := call(service.Client(t, server.URL+"/"+canary), payvault.WithHeader("X-Canary", canary)); err != nil {
						service.AssertHidden(t, err, canary, service.APIKey, "<html")
					}
				}
			}
			service.AssertHidden(t, call(service.Client(t, service.Nowhere+"/"+canary)), canary, service.APIKey)
		})
	}
}

// TestEchoOfTheCaller: what the caller has put into path, filters and headers is not repeated, even if the service
// does.
func TestEchoOfTheCaller(t *testing.T) {
	t.Parallel()
	server := service.Observe(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		text, _ := json.Marshal(map[string]any{"code": 9, "message": fmt.Sprint(
			r.URL.Path, " ", r.Header.Get("X-Trace"), " ", r.URL.RawQuery, " ", r.URL.Query())})
		service.Say(w, 400, string(text))
	})
	client := service.Client(t, server.URL)
	err := client.Invoices.Send(t.Context(), "inv-secret", nil, payvault.WithHeader("X-Trace", "hunter2-token"))
	service.AssertHidden(t, err, "inv-secret", "hunter2-token")
	_, err = client.Customers.List(t.Context(), &payvault.ListOptions{
		OrderOn: "customer_id", Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", "jane@example.com")},
	})
	service.AssertHidden(t, err, "jane@example.com", "jane%40example.com")
	assert.Contains(t, service.AsError(t, err).Message, "order_on=customer_id")
	for _, query := range []url.Values{
		{"filter": {"field,EQUALS,private value"}}, {"q": {"private value"}, "page": {"0"}},
	} {
		err = client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}, Query: query}, nil)
		service.AssertHidden(t, err, "private value", "private+value")
	}
}

// tokenizeError is what becomes of a refusal with a text.
func tokenizeError(t *testing.T, request *payvault.TokenizeRequest, text string) *payvault.Error {
	t.Helper()
	request.MerchantID = 1
	server := service.Answer(t, 200, `{"rcode":"905","rmsg":"`+text+`"}`)
	_, err := service.Client(t, server.URL).Tokens.Tokenize(t.Context(), request)
	return service.AsError(t, err)
}

// TestEchoInAnotherForm: secrets that overlap, numbers with separators of any length, a text in another case.
func TestEchoInAnotherForm(t *testing.T) {
	t.Parallel()
	for _, cvv := range []string{"411", "1111", "4111111111111111"} { // the start of the card number, or within it
		request := &payvault.TokenizeRequest{
			CVV2:       payvault.NewSecret(cvv),
			CardNumber: payvault.NewSecret("4111111111111111"),
		}
		assert.Equal(t, "card [REDACTED] with code [REDACTED]",
			tokenizeError(t, request, "card 4111111111111111 with code "+cvv).Message)
	}
	// A code must not break up a number.
	for _, echo := range []string{"123456789012", "1234-5678-9012", "1234 5678 9012"} {
		request := &payvault.TokenizeRequest{CVV2: payvault.NewSecret("123"), DDANumber: payvault.NewSecret("123456789012")}
		assert.EqualError(t, tokenizeError(t, request, "bad account "+echo),
			"payvault: tokens.tokenize: status 200 OK: code 905: bad account [REDACTED]")
	}
	for text, want := range map[string]string{
		"4111---1111 - 1111... 1111 is no card": "[REDACTED] is no card",
		"WALLET PAYLOAD 5KQ0X":                  "[REDACTED]",
		"cvv 937, 9 3 7":                        "cvv [REDACTED], 9 3 7",
		"41111111111111111":                     "[REDACTED]",
	} {
		request := &payvault.TokenizeRequest{
			CardNumber: payvault.NewSecret("4111111111111111"), CVV2: payvault.NewSecret("937"),
			PayloadWalletOnePay: payvault.NewSecret("wallet-payload-5Kq0x"),
		}
		assert.Equal(t, want, tokenizeError(t, request, text).Message)
	}
}

// TestCodeThatEqualsAnID: a program decides by the code, whatever digits the caller's ID or security code has.
func TestCodeThatEqualsAnID(t *testing.T) {
	t.Parallel()
	server := service.Answer(t, 200, `{"code":117,"rcode":"117","message":"refused","rmsg":"refused"}`)
	client := service.Client(t, server.URL)
	_, cancelErr := client.Subscriptions.Cancel(t.Context(), 117, &payvault.SubscriptionCancelRequest{CustomerID: "C1"})
	request := &payvault.TokenizeRequest{MerchantID: 1, CVV2: payvault.NewSecret("117")}
	_, tokenizeErr := client.Tokens.Tokenize(t.Context(), request)
	for _, err := range []error{cancelErr, tokenizeErr} {
		assert.Equal(t, "117", service.AsError(t, err).Code)
	}
}

// TestEchoOfEveryKey: the key of an earlier attempt may still be valid.
func TestEchoOfEveryKey(t *testing.T) {
	t.Parallel()
	server := service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n < 3 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		service.Say(w, 400, `{"code":7,"message":"rotated-key-1 then rotated-key-2 then `+r.Header.Get("Authorization")+`"}`)
	})
	asked := 0
	source := func(context.Context) (string, error) {
		asked++
		return "rotated-key-" + strconv.Itoa(asked), nil
	}
	_, err := service.Client(t, server.URL, payvault.WithKeySource(source)).Applications.Validate(t.Context(), 1)
	service.AssertHidden(t, err, "rotated-key", base64.StdEncoding.EncodeToString([]byte(":rotated-key-3")))
	assert.Equal(t, "[REDACTED] then [REDACTED] then Basic [REDACTED]", service.AsError(t, err).Message)
}

// TestKeyStaysWithItsHost runs every operation through a proxy, with answers that name other hosts, and looks for the
// key wherever it does not belong.
func TestKeyStaysWithItsHost(t *testing.T) {
	t.Parallel()
	other := service.Answer(t, 200, `{"code":0}`)
	var proxied sync.Map
	proxy := httptest.NewServer(tunnel(func(text string) { proxied.Store(text, true) }))
	t.Cleanup(proxy.Close)
	to, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	for _, c := range calls.All() {
		server := &service.Server{}
		answered := 0
		server.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.Add(r)
			if answered++; answered > 1 {
				service.Say(w, 200, c.Answer())
				return
			}
			for name, value := range map[string]string{
				"Location": other.URL, "Content-Location": other.URL, "Refresh": "0; url=" + other.URL,
				"Link": "<" + other.URL + ">; rel=preload", "Alt-Svc": fmt.Sprintf("http/1.1=%q", other.Listener.Addr()),
			} {
				w.Header().Set(name, value)
			}
			w.WriteHeader(http.StatusTemporaryRedirect)
		}))
		t.Cleanup(server.Close)
		pool := server.Client().Transport.(*http.Transport).Clone()
		pool.Proxy = http.ProxyURL(to)
		client := service.Client(t, server.URL, service.Over(pool))
		_, err := c.Do(t.Context(), client, marked(), c.Full)
		require.Error(t, err, c.Name)
		_, err = c.Do(t.Context(), client, marked(), c.Full)
		require.NoError(t, err, c.Name)
		require.Len(t, server.Seen(), 2, c.Name)
		for _, r := range server.Seen() {
			assert.Equal(t, []string{service.BasicToken}, r.Header.Values("Authorization"), c.Name)
			r.Header.Del("Authorization")
			rest := fmt.Sprint(r.Target, r.Header, string(r.Body))
			assert.NotContains(t, rest, service.APIKey, c.Name)
			assert.NotContains(t, rest, strings.TrimPrefix(service.BasicToken, "Basic "), c.Name)
		}
		client.CloseIdleConnections()
	}
	assert.Empty(t, other.Seen(), "what another host saw")
	connects := 0
	proxied.Range(func(text, _ any) bool {
		connects += strings.Count(text.(string), "CONNECT ")
		assert.NotContains(t, text, "Authorization")
		assert.NotContains(t, text, service.APIKey)
		return true
	})
	assert.Positive(t, connects)
}

// tunnel is a proxy that shows what it sees.
func tunnel(see func(text string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		see(fmt.Sprintln(r.Method, r.RequestURI, r.Header))
		to, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = to.Close() }()
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, buffered)
			_ = to.Close()
		}()
		_, _ = io.Copy(conn, to)
	}
}

// TestEchoOfAnEscapedQuery: a gateway names the URL that it got, in which a value is escaped.
func TestEchoOfAnEscapedQuery(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere,
		service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
			return service.Reply(http.StatusBadRequest, `{"code":9,"message":"no such page: `+r.URL.RawQuery+`"}`), nil
		})))
	_, err := client.Customers.List(t.Context(), &payvault.ListOptions{
		Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", "ada ä+b%y&ron@example.com")},
	})
	require.ErrorIs(t, err, payvault.ErrRejected)
	assert.Contains(t, err.Error(), "no such page")
	service.AssertHidden(t, err, "ada", "C3", "ron", "example.com")
}
