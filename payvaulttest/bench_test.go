package payvaulttest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/payvault/payvaulttest"
)

// Starting a server beside starting an empty one of net/http/httptest.
func BenchmarkStart(b *testing.B) {
	b.Run("emulator", func(b *testing.B) {
		payvaulttest.NewServer().Close() // the document is read once
		for b.Loop() {
			payvaulttest.NewServer().Close()
		}
	})
	b.Run("httptest", func(b *testing.B) {
		for b.Loop() {
			httptest.NewServer(http.NotFoundHandler()).Close()
		}
	})
}

// A request beside one of a handler that answers the same.
func BenchmarkRequest(b *testing.B) {
	const answer = `{"rcode":"000","rmsg":"Success","pg_id":"A","card_id":"B","card_number":"4111xxxxxx111111"}`
	srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
	defer srv.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(answer))
	}))
	defer plain.Close()
	for name, url := range map[string]string{"emulator": srv.URL, "httptest": plain.URL} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+"/pg/tokenize", strings.NewReader(newCard))
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.SetBasicAuth("", srv.Merchant().APIKey)
				resp, err := srv.HTTPClient().Do(r)
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, resp.Body) // or the connection is not used again
				if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status, err)
				}
			}
		})
	}
}
