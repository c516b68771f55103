package payvault_test

import (
	"encoding/json"
	"fmt"
	"log"

	jsonv2 "github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault"
)

// Order is a type of your own that writes its JSON itself and has a secret.
type Order struct {
	number int
	card   payvault.Secret
}

// form returns the value that MarshalJSON and MarshalJSONTo write.
func (o Order) form() any {
	return map[string]any{"order": fmt.Sprintf("A-%d", o.number), "card": o.card}
}

// MarshalJSON is for encoding/json and slog.JSONHandler. It writes the secret as [REDACTED].
func (o Order) MarshalJSON() ([]byte, error) { return json.Marshal(o.form()) }

// MarshalJSONTo is for MarshalWire and Client.Call. It must never call Reveal, because from Go 1.27 on, encoding/json
// and slog.JSONHandler call it instead of MarshalJSON. MarshalEncode writes the text of the secret only for MarshalWire
// and Client.Call.
func (o Order) MarshalJSONTo(enc *jsontext.Encoder) error {
	return jsonv2.MarshalEncode(enc, o.form(), jsonv2.Deterministic(true))
}

// If a type of your own has a secret and a method MarshalJSON, it also needs a method MarshalJSONTo. Otherwise
// MarshalWire refuses its values, because MarshalJSON writes [REDACTED]. MarshalJSONTo must never call Reveal.
func ExampleMarshalWire_ownType() {
	order := Order{7, payvault.NewSecret("4111111111111111")}
	logged, err := json.Marshal(order)
	if err != nil {
		log.Fatal(err)
	}
	sent, err := payvault.MarshalWire(order)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(logged))
	fmt.Println(string(sent))
	// Output:
	// {"card":"[REDACTED]","order":"A-7"}
	// {"card":"4111111111111111","order":"A-7"}
}
