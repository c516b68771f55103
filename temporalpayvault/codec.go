package temporalpayvault

import (
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

// NewCodec returns a codec that encrypts whole payloads by AES-256-GCM: with the key of the ID current, of 32 bytes
// like the others, which decrypt what was encrypted before. If current is empty, it decrypts and encrypts nothing.
// Payloads that are not encrypted are read too, so that inputs can be typed in the user interface.
//
// To change keys while workflows run, give the new one to all workers and clients first, then make it current, and keep
// the old one as long as there are histories. To introduce a codec is the same: first one that encrypts nothing. A
// worker that lacks a key lets others do what it cannot read, but fails a workflow whose input that is.
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

// Encode encrypts payloads.
func (c *codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c.current == "" {
		return payloads, nil
	}
	return each(payloads, func(p *commonpb.Payload) (*commonpb.Payload, error) {
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

// Decode decrypts payloads.
func (c *codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return each(payloads, func(p *commonpb.Payload) (*commonpb.Payload, error) {
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

func each(
	payloads []*commonpb.Payload, convert func(*commonpb.Payload) (*commonpb.Payload, error),
) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if out[i], err = convert(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// NewConverters returns what the options of a client take, so that neither payloads nor texts of failures can be read
// in a history. A value with a [payvault.Secret] is passed whole.
//
// Without a codec that encrypts, the converters refuse values with a Secret, which Temporal's own converters write as
// [REDACTED]. A codec says that it has encrypted one by the encoding binary/encrypted of what it returns, as that of
// [NewCodec] does; what other codecs say is not checked any further. In the details of a failure a text that says so
// stands for them.
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
		return converter.NewCodecDataConverter(plain, codec)
	}
	return data(false), temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: data(true), EncodeCommonAttributes: encrypts(codec),
	})
}

func encrypts(c converter.PayloadCodec) bool {
	own, ok := c.(*codec)
	return c != nil && (!ok || own.current != "")
}

// secretConverter writes the texts of secrets, or refuses to.
type secretConverter struct {
	*converter.JSONPayloadConverter

	codec      converter.PayloadCodec // may be nil
	inFailures bool                   // it must not refuse: the SDK would panic, and never tell the server of the failure
}

// ToPayload converts a value.
func (c *secretConverter) ToPayload(value any) (*commonpb.Payload, error) {
	if !(search{}).holdsSecret(reflect.ValueOf(value)) {
		return c.JSONPayloadConverter.ToPayload(value)
	}
	p, err := c.withSecret(value)
	if err != nil && c.inFailures {
		return c.JSONPayloadConverter.ToPayload(errNoCodec.Error())
	}
	return p, err
}

var errNoCodec = errors.New(
	"temporalpayvault: a value with a payvault.Secret needs converters with a codec that encrypts",
)

// withSecret writes the texts of secrets, if the codec encrypts them.
func (c *secretConverter) withSecret(value any) (*commonpb.Payload, error) {
	if c.codec == nil {
		return nil, errNoCodec
	}
	wire, err := payvault.MarshalWire(value)
	if err != nil {
		return nil, err
	}
	p := &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(c.Encoding())}, Data: wire,
	}
	if !marksEncrypted(c.codec, p) {
		return nil, errNoCodec
	}
	return p, nil
}

// marksEncrypted reports whether a codec says that it encrypts a payload.
func marksEncrypted(codec converter.PayloadCodec, p *commonpb.Payload) bool {
	out, err := codec.Encode([]*commonpb.Payload{p})
	return err == nil && len(out) == 1 && string(out[0].GetMetadata()[converter.MetadataEncoding]) == encodingEncrypted
}

// search has the places that were looked at, of values that hold themselves.
type search map[place]bool

type place struct {
	at  uintptr
	of  reflect.Type
	len int
}

// holdsSecret reports whether a Secret that is not empty can be reached from v.
func (s search) holdsSecret(v reflect.Value) bool {
	if !v.IsValid() || s.wasAt(v) {
		return false
	}
	if v.Type() == reflect.TypeFor[payvault.Secret]() {
		return !v.IsZero()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return s.holdsSecret(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			if s.holdsSecret(field) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if s.holdsSecret(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if s.holdsSecret(it.Key()) || s.holdsSecret(it.Value()) {
				return true
			}
		}
	default:
	}
	return false
}

// wasAt reports whether what v points to was looked at before.
func (s search) wasAt(v reflect.Value) bool {
	p := place{of: v.Type()}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map:
	case reflect.Slice:
		p.len = v.Len()
	default:
		return false
	}
	p.at = v.Pointer()
	before := s[p]
	s[p] = true
	return before
}
