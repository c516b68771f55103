package payvault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// canned is a RoundTripper that reads the request and answers at once, always in the same way.
type canned struct {
	header http.Header
	body   []byte
}

func newCanned(body []byte) *canned {
	return &canned{http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}, body}
}

func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: c.header, ContentLength: int64(len(c.body)),
		Body: io.NopCloser(bytes.NewReader(c.body)), Request: req,
	}, nil
}

func tokenizeAnswer() []byte {
	return []byte(`{"rcode":"000","rmsg":"Success","pg_id":"PG1001","card_id":"CARD1002","card_number":"4111xxxxxx111111"}`)
}

func tokenizeRequest() *payvault.TokenizeRequest {
	return &payvault.TokenizeRequest{
		MerchantID: 212345, CardholderName: "Tina Tester", AVSZip: "10001", CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229", CVV2: payvault.NewSecret("123"),
	}
}

// floorRequest and floorResponse are what one would write by hand for this call.
type floorRequest struct {
	MerchantID     string `json:"merchant_id"`
	CardholderName string `json:"cardholder_name"`
	AVSZip         string `json:"avs_zip"`
	CardNumber     string `json:"card_number"`
	ExpDate        string `json:"exp_date"`
	CVV2           string `json:"cvv2"`
}

type floorResponse struct {
	RCode      string `json:"rcode"`
	RMsg       string `json:"rmsg"`
	PGID       string `json:"pg_id"`
	CardID     string `json:"card_id"`
	CardNumber string `json:"card_number"`
}

// floorTokenize is the call with net/http and encoding/json alone.
func floorTokenize(ctx context.Context, client *http.Client, in floorRequest) (out floorResponse, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://service.test/gateway/v1/pg/tokenize", bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth("", "test-api-key")
	resp, err := client.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(answer, &out)
}

func BenchmarkTokenize(b *testing.B) {
	rt := newCanned(tokenizeAnswer())
	b.Run("floor", func(b *testing.B) {
		client := &http.Client{Transport: rt}
		in := floorRequest{"212345", "Tina Tester", "10001", "4111111111111111", "1229", "123"}
		b.ReportAllocs()
		for b.Loop() {
			if out, err := floorTokenize(b.Context(), client, in); err != nil || out.CardID != "CARD1002" {
				b.Fatal(out, err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		client := cannedClient(b, rt)
		in := tokenizeRequest()
		b.ReportAllocs()
		for b.Loop() {
			if out, err := client.Tokens.Tokenize(b.Context(), in); err != nil || out.CardID != "CARD1002" {
				b.Fatal(out, err)
			}
		}
	})
}

// hundredCustomers is a page of about 150 KB: the first customer of the fixture, with IDs of their own.
func hundredCustomers(tb testing.TB) []byte {
	tb.Helper()
	var page struct {
		Data []map[string]any `json:"data"`
	}
	text, err := os.ReadFile("testdata/customers/list.response.json")
	require.NoError(tb, err)
	require.NoError(tb, json.Unmarshal(text, &page))
	customers := make([]map[string]any, 100)
	for i := range customers {
		customers[i] = maps.Clone(page.Data[0])
		customers[i]["customer_id"] = fmt.Sprintf("CUST%04d", i)
	}
	body, err := json.Marshal(map[string]any{
		"code": 0, "message": "Success", "totalPages": 1, "totalRecords": 100, "data": customers,
	})
	require.NoError(tb, err)
	return body
}

func BenchmarkCustomersList100(b *testing.B) {
	body := hundredCustomers(b)
	b.Run("unmarshal", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			var page struct {
				Code         int                 `json:"code"`
				Message      string              `json:"message"`
				TotalPages   int                 `json:"totalPages"`
				TotalRecords int                 `json:"totalRecords"`
				Data         []payvault.Customer `json:"data"`
			}
			if err := json.Unmarshal(body, &page); err != nil || len(page.Data) != 100 {
				b.Fatal(err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		client := cannedClient(b, newCanned(body))
		options := &payvault.ListOptions{Count: 100}
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if page, err := client.Customers.List(b.Context(), options); err != nil || len(page.Items) != 100 {
				b.Fatal(err)
			}
		}
	})
}

// TestBenchmarksMeasureTheWholePage keeps the benchmarks honest: nothing of the page is lost.
func TestBenchmarksMeasureTheWholePage(t *testing.T) {
	t.Parallel()
	body := hundredCustomers(t)
	assert.InDelta(t, 150_000, len(body), 50_000)
	page, err := cannedClient(t, newCanned(body)).Customers.List(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, page.Items, 100)
	assert.Equal(t, "CUST0099", page.Items[99].ID)
	assert.Equal(t, page.Items[0].BillingCards, page.Items[99].BillingCards)
	assert.NotEmpty(t, page.Items[99].ShippingAddresses)
}
