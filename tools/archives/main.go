// Command archives writes the files that a release publishes: an archive of the emulator for each target, an SBOM of
// the emulator in the CycloneDX format, and checksums. The same commit, tag and Go version give the same bytes. The
// script .ci/release runs the command:
//
//	go -C tools run ./archives -source DIR -tag v0.1.0 -out DIR linux/amd64 windows/arm64
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

const program = "payvault-emulator"

// release describes a release. source is a clone with the commit of the tag, and out is the directory for the results.
type release struct {
	source, tag, out string
}

// file is a file in an archive, or a file to publish.
type file struct {
	name    string
	mode    fs.FileMode
	content []byte
}

func main() {
	var r release
	flag.StringVar(&r.source, "source", "", "the `directory` of a clone, with the commit of the tag")
	flag.StringVar(&r.tag, "tag", "", "the `version`, such as v0.1.0")
	flag.StringVar(&r.out, "out", "", "the `directory` for the results")
	flag.Parse()
	if err := r.write(context.Background(), flag.Args()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "archives:", err)
		os.Exit(1)
	}
}

// write builds all targets and writes the files to publish.
func (r release) write(ctx context.Context, targets []string) error {
	if r.source == "" || r.tag == "" || r.out == "" || len(targets) == 0 {
		return errors.New("-source, -tag, -out and at least one target are needed")
	}
	var published []file
	var builds []*debug.BuildInfo
	for _, target := range targets {
		binary, info, err := r.build(ctx, target)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		archive, err := r.archive(ctx, target, binary, info)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		published = append(published, archive)
		builds = append(builds, info)
	}
	list, err := sbom(builds)
	if err != nil {
		return err
	}
	published = append(published, file{name: r.name() + ".cdx.json", content: list})
	published = append(published, file{name: r.name() + ".sha256", content: checksums(published)})
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // published files are no secret
		return fmt.Errorf("create the directory for the results: %w", err)
	}
	for _, f := range published {
		//nolint:gosec // published files are no secret
		if err := os.WriteFile(filepath.Join(r.out, f.name), f.content, 0o644); err != nil {
			return fmt.Errorf("write a result: %w", err)
		}
	}
	return nil
}

// name returns the beginning of the names of all published files.
func (r release) name() string { return program + "_" + r.tag }

// build returns the program for a target such as linux/amd64, and its build information. The flag -trimpath keeps
// directories of this machine out of the program.
func (r release) build(ctx context.Context, target string) (binary []byte, info *debug.BuildInfo, err error) {
	system, architecture, _ := strings.Cut(target, "/")
	dir, err := os.MkdirTemp("", program)
	if err != nil {
		return nil, nil, fmt.Errorf("create a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, program)
	_, err = r.goCommand(ctx, []string{"GOOS=" + system, "GOARCH=" + architecture, "CGO_ENABLED=0", "GOEXPERIMENT="},
		"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", name, "./cmd/"+program)
	if err != nil {
		return nil, nil, err
	}
	if info, err = buildinfo.ReadFile(name); err != nil {
		return nil, nil, fmt.Errorf("read what was built: %w", err)
	}
	if info.Main.Version != r.tag {
		return nil, nil, fmt.Errorf("the source is that of %s, not of %s", info.Main.Version, r.tag)
	}
	//nolint:gosec // the program that was just built
	if binary, err = os.ReadFile(name); err != nil {
		return nil, nil, fmt.Errorf("read what was built: %w", err)
	}
	return binary, info, nil
}

// archive packs the program with its license and the licenses of Go and of the linked modules. All files have the time
// of the commit.
func (r release) archive(ctx context.Context, target string, binary []byte, info *debug.BuildInfo) (file, error) {
	own, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return file{}, fmt.Errorf("read the license: %w", err)
	}
	others, err := r.licenses(ctx, info.Deps)
	if err != nil {
		return file{}, err
	}
	modified, err := commitTime(info)
	if err != nil {
		return file{}, err
	}
	files := []file{
		{name: program, mode: 0o755, content: binary},
		{name: "LICENSE", mode: 0o644, content: own},
		{name: "LICENSES-OF-OTHERS", mode: 0o644, content: others},
	}
	packed := file{name: r.name() + "_" + strings.ReplaceAll(target, "/", "_") + ".tar.gz"}
	pack := tarball
	if strings.HasPrefix(target, "windows/") {
		files[0].name += ".exe"
		packed.name = strings.TrimSuffix(packed.name, ".tar.gz") + ".zip"
		pack = zipped
	}
	packed.content, err = pack(files, modified)
	if err != nil {
		return file{}, fmt.Errorf("pack: %w", err)
	}
	return packed, nil
}

// commitTime returns the time of the commit that was built.
func commitTime(info *debug.BuildInfo) (time.Time, error) {
	for _, setting := range info.Settings {
		if setting.Key == "vcs.time" {
			modified, err := time.Parse(time.RFC3339, setting.Value)
			if err != nil {
				return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
			}
			return modified.UTC(), nil
		}
	}
	return time.Time{}, errors.New("the time of the commit is not known")
}

// licenses returns the licenses of Go and of modules. Before each license it writes "Go", or the name and version of
// the module.
func (r release) licenses(ctx context.Context, modules []*debug.Module) ([]byte, error) {
	names, list := []string{"Go"}, []string{"list", "-m", "-f", "{{.Dir}}"}
	for _, module := range modules {
		names = append(names, module.Path+" "+module.Version)
		list = append(list, module.Path)
	}
	goroot, err := r.goCommand(ctx, nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs, err := r.goCommand(ctx, nil, list...)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for i, dir := range strings.Fields(goroot + dirs) {
		found, err := filepath.Glob(filepath.Join(dir, "LICENSE*"))
		if err != nil {
			return nil, fmt.Errorf("look for the license of %s: %w", names[i], err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no license", names[i])
		}
		for _, name := range found {
			text, err := os.ReadFile(name) //nolint:gosec // a license in the cache of modules
			if err != nil {
				return nil, fmt.Errorf("read the license of %s: %w", names[i], err)
			}
			fmt.Fprintf(&all, "==== %s\n\n%s\n", names[i], text)
		}
	}
	return all.Bytes(), nil
}

// goCommand runs the go command in the directory source and returns its output. It ignores the environment variable
// GOFLAGS.
func (r release) goCommand(ctx context.Context, environment []string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are constants of this program
	command.Dir = r.source
	command.Env = append(append(command.Environ(), "GOFLAGS=", "GOWORK=off"), environment...)
	command.Stdout = &stdout
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return stdout.String(), nil
}

func tarball(files []file, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: modified}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func zipped(files []file, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(f.mode)
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := entry.Write(f.content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("close: %w", err)
	}
	return packed.Bytes(), nil
}

// checksums returns the checksums of files in the form that sha256sum -c reads.
func checksums(files []file) []byte {
	var sums bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.content), f.name)
	}
	return sums.Bytes()
}
