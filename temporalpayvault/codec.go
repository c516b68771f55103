package temporalpayvault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"reflect"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"example.com/payvault"
)

const (
	encodingEncrypted = "binary/encrypted"
	metadataKeyID     = "encryption-key-id"
	keyBytes          = 32
)

type codec struct {
	current string
	ciphers map[string]cipher.AEAD
}

// NewCodec returns a codec that encrypts whole payloads with AES-256-GCM. The argument current is the ID of the key
// that encrypts. The other keys only decrypt older payloads. Each key has 32 bytes. If current is empty, the codec
// decrypts but does not encrypt. The codec also reads payloads that are not encrypted, so that somebody can type the
// input of a workflow in the web UI of Temporal.
//
// To change keys while workflows run, first give the new key to all workers and clients, then make the new key current.
// Keep the old key as long as a history has payloads that it encrypted. Introduce a codec in the same way: first give
// all workers and clients a codec that does not encrypt. A worker that lacks a key fails the tasks that it cannot read,
// and the server gives these tasks to other workers.
func NewCodec(current string, keys map[string][]byte) (converter.PayloadCodec, error) {
	c := &codec{current, map[string]cipher.AEAD{}}
	for id, key := range keys {
		if len(key) != keyBytes {
			return nil, fmt.Errorf("temporalpayvault: key %q has %d bytes, not %d", id, len(key), keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if c.ciphers[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	if current != "" && c.ciphers[current] == nil {
		return nil, fmt.Errorf("temporalpayvault: there is no key %q", current)
	}
	return c, nil
}

// Encode encrypts payloads, if there is a current key. The payload of a nil value is not encrypted, because the server
// has to read it: nil as the value of an entry in a memo tells the server to remove the entry.
func (c *codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c.current == "" {
		return payloads, nil
	}
	return convert(payloads, func(p *commonpb.Payload) (*commonpb.Payload, error) {
		if string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingNil {
			return p, nil
		}
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, err
		}
		return &commonpb.Payload{
			Metadata: map[string][]byte{
				converter.MetadataEncoding: []byte(encodingEncrypted), metadataKeyID: []byte(c.current),
			},
			//nolint:gosec // the cipher makes the nonce itself
			Data: c.ciphers[c.current].Seal(nil, nil, plain, []byte(c.current)),
		}, nil
	})
}

// Decode decrypts payloads. If a payload is not encrypted, Decode returns it unchanged.
func (c *codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return convert(payloads, func(p *commonpb.Payload) (*commonpb.Payload, error) {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encodingEncrypted {
			return p, nil
		}
		id := string(p.GetMetadata()[metadataKeyID])
		key := c.ciphers[id]
		if key == nil {
			return nil, fmt.Errorf("temporalpayvault: there is no key %q", id)
		}
		plain, err := key.Open(nil, nil, p.GetData(), []byte(id))
		if err != nil {
			return nil, fmt.Errorf("temporalpayvault: key %q: %w", id, err)
		}
		out := &commonpb.Payload{}
		return out, proto.Unmarshal(plain, out)
	})
}

// convert calls a function for each payload, and returns the results.
func convert(
	payloads []*commonpb.Payload, one func(*commonpb.Payload) (*commonpb.Payload, error),
) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if out[i], err = one(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// NewConverters returns the converters for the options of a Temporal client. Workers and the clients that start
// workflows need the same converters. With a codec that encrypts, the payloads and the texts of failures are encrypted
// in a history, and a [payvault.Secret] is passed with its text. Without such a codec, the returned converters refuse a
// value with a Secret that is not empty. In the details of a failure they write [REDACTED] for the Secret instead, as
// the converters of Temporal do everywhere.
//
// If you write a codec yourself, set the encoding of an encrypted payload to binary/encrypted, as the codec of
// [NewCodec] does.
func NewConverters(codec converter.PayloadCodec) (converter.DataConverter, converter.FailureConverter) {
	data := func(inFailures bool) converter.DataConverter {
		plain := converter.NewCompositeDataConverter(
			converter.NewNilPayloadConverter(), converter.NewByteSlicePayloadConverter(),
			converter.NewProtoJSONPayloadConverter(), converter.NewProtoPayloadConverter(),
			&secretConverter{converter.NewJSONPayloadConverter(), codec, inFailures},
		)
		if codec == nil {
			return plain
		}
		return &rawConverter{converter.NewCodecDataConverter(plain, codec)}
	}
	return data(false), temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: data(true), EncodeCommonAttributes: encrypts(codec),
	})
}

// encrypts reports whether a codec encrypts: whether it returns a payload with the encoding binary/encrypted.
func encrypts(codec converter.PayloadCodec) bool {
	if codec == nil {
		return false
	}
	out, err := codec.Encode([]*commonpb.Payload{{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte("{}"),
	}})
	return err == nil && len(out) == 1 && string(out[0].GetMetadata()[converter.MetadataEncoding]) == encodingEncrypted
}

// rawConverter returns the raw value of an input that cannot be decrypted, so that the function readable can tell such
// an input from invalid JSON.
type rawConverter struct{ converter.DataConverter }

// FromPayloads converts payloads to values. If the conversion fails and the only value is a [converter.RawValue],
// FromPayloads stores the raw payload in the RawValue and returns nil.
func (c *rawConverter) FromPayloads(payloads *commonpb.Payloads, values ...any) error {
	err := c.DataConverter.FromPayloads(payloads, values...)
	if err != nil && len(values) == 1 {
		if raw, ok := values[0].(*converter.RawValue); ok {
			*raw = converter.NewRawValue(payloads.GetPayloads()[0])
			return nil
		}
	}
	return err
}

// secretConverter converts values to JSON. If the codec encrypts, the JSON has the texts of secrets. Otherwise the
// converter refuses a value with a secret, unless inFailures is true.
type secretConverter struct {
	*converter.JSONPayloadConverter

	codec converter.PayloadCodec // may be nil
	// inFailures is true for the details of failures. Then the converter writes [REDACTED] instead of refusing a secret,
	// because an error would make the SDK of Temporal panic instead of reporting the failure.
	inFailures bool
}

var errNoCodec = errors.New(
	"temporalpayvault: a value with a payvault.Secret needs converters with a codec that encrypts",
)

// ToPayload converts a value to JSON.
func (c *secretConverter) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := c.JSONPayloadConverter.ToPayload(value)
	if err != nil || !bytes.Contains(p.GetData(), []byte("[REDACTED]")) || !holdsSecret(reflect.ValueOf(value)) {
		return p, err
	}
	wire, err := []byte(nil), errNoCodec
	if encrypts(c.codec) {
		wire, err = payvault.MarshalWire(value)
	}
	switch {
	case err == nil:
		p.Data = wire
	case !c.inFailures:
		return nil, err
	}
	return p, nil
}

// holdsSecret reports whether the JSON of a value contains a Secret that is not empty. The value has no cycle, because
// ToPayload has already marshaled it as JSON.
func holdsSecret(v reflect.Value) bool {
	if !v.IsValid() || v.Type() == reflect.TypeFor[payvault.Secret]() {
		return v.IsValid() && !v.IsZero()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return holdsSecret(v.Elem())
	case reflect.Struct:
		for field, value := range v.Fields() {
			if (field.IsExported() || field.Anonymous) && field.Tag.Get("json") != "-" && holdsSecret(value) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if holdsSecret(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if holdsSecret(it.Key()) || holdsSecret(it.Value()) {
				return true
			}
		}
	default:
	}
	return false
}
