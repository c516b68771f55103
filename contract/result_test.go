package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// checkRead fails for everything in an answer that did not get into the result.
func checkRead(t *testing.T, body []byte, result any) {
	t.Helper()
	if result == nil {
		return
	}
	text, err := payvault.MarshalWire(result)
	require.NoError(t, err)
	for _, path := range lost("", resultOf(exactJSON(t, body), result), exactJSON(t, text)) {
		t.Errorf("the result does not have what the answer has at %s", path)
	}
}

// resultOf returns the part of an answer that a result stands for.
func resultOf(answer any, result any) any {
	members, _ := answer.(map[string]any)
	delete(members, "code")
	delete(members, "message")
	switch result.(type) {
	case *payvault.TokenizeResponse, *payvault.Validation:
		return members
	}
	if members["totalPages"] != nil {
		return members
	}
	data, _ := members["data"].(map[string]any)
	if _, ok := result.([]payvault.SavedField); ok {
		return data["fields"]
	}
	return data
}

// lost lists the paths of the values that are in want and not in got. Empty values may be left out.
func lost(path string, want, got any) []string {
	var paths []string
	switch want := want.(type) {
	case map[string]any:
		members, _ := got.(map[string]any)
		for name, value := range want {
			paths = append(paths, lost(path+"/"+name, value, members[name])...)
		}
	case []any:
		elements, _ := got.([]any)
		elements = append(elements, make([]any, max(0, len(want)-len(elements)))...)
		for i, value := range want {
			paths = append(paths, lost(fmt.Sprintf("%s/%d", path, i), value, elements[i])...)
		}
	default:
		if want != nil && want != "" && want != false && want != json.Number("0") && want != got {
			return []string{path}
		}
	}
	return paths
}

// exactJSON decodes without rounding numbers.
func exactJSON(t *testing.T, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value any
	require.NoError(t, dec.Decode(&value))
	return value
}

// checkEcho fails for everything in an answer that has the name, but not the value, that was sent: names that the
// emulator mixes up. Filled requests have another text under each name.
func checkEcho(t *testing.T, x exchange) {
	t.Helper()
	sent, err := decodeJSON(x.sent)
	if err != nil {
		return // no body, or a form
	}
	request, _ := sent.(map[string]any)
	value, _ := decodeJSON(x.received)
	answer, _ := value.(map[string]any)
	data, enveloped := answer["data"].(map[string]any)
	if fields, ok := data["fields"].([]any); ok { // pairs of application data, which are sent as a list
		request, data = map[string]any{"fields": request["data"]}, map[string]any{"fields": fields}
	}
	if !enveloped {
		data = answer
	}
	for _, path := range changed("", request, data) {
		t.Errorf("the answer has another value than the request at %s", path)
	}
}

// changed lists the paths of the values that are in both and differ, but for card numbers, which are masked.
func changed(path string, sent, got any) []string {
	var paths []string
	switch sent := sent.(type) {
	case map[string]any:
		members, _ := got.(map[string]any)
		for name, value := range sent {
			if member, ok := members[name]; ok && name != "card_number" {
				paths = append(paths, changed(path+"/"+name, value, member)...)
			}
		}
	case []any:
		elements, _ := got.([]any)
		for i := range min(len(sent), len(elements)) {
			paths = append(paths, changed(fmt.Sprintf("%s/%d", path, i), sent[i], elements[i])...)
		}
	default:
		if sent != got {
			return []string{path}
		}
	}
	return paths
}

// checkMerchant fails for a record that belongs to another merchant than the request is for.
func checkMerchant(t *testing.T, e *env, x exchange) {
	t.Helper()
	_, key, _ := x.request.BasicAuth()
	accounts := e.srv.Accounts()
	i := slices.IndexFunc(accounts, func(a payvaulttest.Account) bool { return a.APIKey == key })
	require.NotEqual(t, -1, i)
	merchant := json.Number(strconv.FormatInt(int64(accounts[i].MerchantID), 10))
	var sent map[string]any
	if json.Valid(x.sent) {
		sent, _ = exactJSON(t, x.sent).(map[string]any)
	}
	if other, ok := sent["merchant_id"].(json.Number); ok {
		merchant = other
	}
	if other := x.request.URL.Query().Get("merchant_id"); other != "" {
		merchant = json.Number(other)
	}
	answer, _ := exactJSON(t, x.received).(map[string]any)
	records, isList := answer["data"].([]any)
	if !isList {
		records = []any{answer["data"]}
	}
	for _, record := range records {
		members, _ := record.(map[string]any)
		if members["app_id"] != nil {
			continue // an application is not of the merchant that it boards
		}
		for _, name := range []string{"node_id", "merchant_id"} {
			if id, ok := members[name]; ok && id != merchant {
				t.Errorf("the answer has the %s %v, but the request is for the merchant %s", name, id, merchant)
			}
		}
	}
}
