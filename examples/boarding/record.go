package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"example.com/payvault"
)

// merchantFile is the partner's file about a merchant, in the JSON form of application data. All values are made up.
// Real files contain tax IDs and bank accounts, and must be stored safely.
//
//go:embed merchant.json
var merchantFile []byte

// record is application data as a list of fields. Its method pick selects fields by key.
type record []field

type field struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

func readRecord(file []byte) (record, error) {
	var r record
	if err := json.Unmarshal(file, &r); err != nil {
		return nil, fmt.Errorf("the merchant's record: %w", err)
	}
	return r, nil
}

// pick returns the fields with the given keys as application data, and the keys that it has found in the record.
func (r record) pick(keys []string) (data payvault.ApplicationData, found []string, err error) {
	var picked record
	for _, f := range r {
		if slices.Contains(keys, f.Key) {
			picked, found = append(picked, f), append(found, f.Key)
		}
	}
	text, err := json.Marshal(picked)
	if err != nil {
		return data, nil, err
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return data, nil, fmt.Errorf("the merchant's record: %w", err)
	}
	return data, found, nil
}
