package contract

import (
	"bytes"
	"io/fs"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

const fixtures = "../testdata"

// A fixture is a file such as customers/create.request.min.json.
type fixture struct {
	file      string
	operation string // customers.create
	variant   string // request.min
}

// listFixtures returns the fixtures of operations, but for those that are meant to break the document.
func listFixtures(t *testing.T) []fixture {
	t.Helper()
	var all []fixture
	require.NoError(t, filepath.WalkDir(fixtures, func(file string, entry fs.DirEntry, err error) error {
		resource := filepath.Base(filepath.Dir(file))
		base, isJSON := strings.CutSuffix(filepath.Base(file), ".json")
		name, variant, _ := strings.Cut(base, ".")
		if err == nil && !entry.IsDir() && isJSON && resource != "errors" && !strings.HasSuffix(variant, "tolerant") {
			all = append(all, fixture{file, resource + "." + name, variant})
		}
		return err
	}))
	return all
}

// TestFixtures holds the hand-written messages of testdata against the document.
func TestFixtures(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	rows := map[string]operationRow{}
	for _, row := range operationRows() {
		rows[row.name] = row
	}
	seen := map[string]map[string]bool{"request": {}, "response": {}, "invalid": {}}
	for _, f := range listFixtures(t) {
		kind, _, _ := strings.Cut(f.variant, ".")
		seen[kind][f.operation] = true
		t.Run(strings.TrimPrefix(f.file, fixtures+"/"), func(t *testing.T) {
			t.Parallel()
			row, ok := rows[f.operation]
			require.True(t, ok, "there is no operation %s", f.operation)
			text, err := os.ReadFile(f.file)
			require.NoError(t, err)
			checkFixture(t, c, row, kind, text)
		})
	}
	for name := range rows {
		assert.True(t, seen["response"][name], "no answer of %s", name)
	}
}

func checkFixture(t *testing.T, c *contract, row operationRow, kind string, text []byte) {
	t.Helper()
	switch kind {
	case "request":
		m := fixtureRequest(t, c, row, text)
		report(t, "the request", c.checkRequest(m))
	case "response":
		report(t, "the answer", c.checkResponse(fixtureRequest(t, c, row, nil), 200, jsonHeader(), text))
	case "invalid": // the HTTP status of a failure is not shown
		for _, status := range []int{200, 422, 503} {
			report(t, "the answer", c.checkResponse(fixtureRequest(t, c, row, nil), status, jsonHeader(), text))
		}
	default:
		t.Errorf("what does %q stand for?", kind)
	}
}

func jsonHeader() map[string][]string { return map[string][]string{"Content-Type": {jsonType}} }

// fixtureRequest is a request of an operation with a body and the query of its fixture.
func fixtureRequest(t *testing.T, c *contract, row operationRow, body []byte) message {
	t.Helper()
	contentType := jsonType
	if row.name == "disputes.respond" && body != nil {
		contentType, body = fixtureForm(t, body)
	}
	m, err := c.find(newRequest(t, row.method, fixturePath(row)+fixtureQuery(row), contentType, body), body)
	require.NoError(t, err)
	require.Equal(t, row.name, m.Route.Operation.OperationID)
	return m
}

// fixturePath puts IDs into a path.
func fixturePath(row operationRow) string {
	segments := strings.Split(row.path, "/")
	for i, segment := range segments {
		if strings.HasPrefix(segment, "{") {
			segments[i] = "17"
		}
	}
	return strings.Join(segments, "/")
}

func fixtureQuery(row operationRow) string {
	if o := calls.Of(payvault.Operation(row.name)); o.Lists() {
		return "?" + calls.Fixture("list.query")
	}
	return ""
}

// fixtureForm puts a dispute response into a form with its file.
func fixtureForm(t *testing.T, response []byte) (string, []byte) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(fixtures, "disputes", "evidence.pdf"))
	require.NoError(t, err)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	require.NoError(t, form.WriteField("disputeResponse", string(response)))
	part, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="evidence.pdf"`}, "Content-Type": {"application/pdf"},
	})
	require.NoError(t, err)
	_, err = part.Write(file)
	require.NoError(t, err)
	require.NoError(t, form.Close())
	return form.FormDataContentType(), body.Bytes()
}

// TestQueries checks the queries of operations that have no other fixture of their request.
func TestQueries(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	for _, row := range operationRows() {
		if row.method != "POST" {
			report(t, row.name, c.checkRequest(fixtureRequest(t, c, row, nil)))
		}
	}
}

// TestErrorFixtures checks the error answers that are meant to be right.
func TestErrorFixtures(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	for file, schema := range map[string]string{
		"platform.json": "PlatformFailure", "platform_detail.json": "PlatformFailure",
		"validation_fields.json": "ApplicationValidation", "rcode.json": "TokenizeFailure",
	} {
		text, err := os.ReadFile(filepath.Join(fixtures, "errors", file))
		require.NoError(t, err)
		report(t, file, problemsOf(checkJSON(c.schema(t, schema), text)))
	}
}
