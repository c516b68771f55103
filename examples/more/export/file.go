package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// replaceFile puts what write writes under path only when all of it is there: an export that fails or is interrupted
// leaves the file of the last one alone. Only the user can read it. A link stays a link.
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

// target is the file that a path leads to, or will.
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
