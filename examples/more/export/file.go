package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// replaceFile replaces the file at path by the output of write. It does so only when the output is complete: an export
// that fails or is interrupted does not change the old file. Only the user can read the file. A link stays a link.
func replaceFile(path string, write func(io.Writer) error) error {
	path, err := target(path)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// target returns the file that a path leads to, even if the file does not exist yet.
func target(path string) (string, error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return path, nil
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
