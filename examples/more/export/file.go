package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// replaceFile replaces the file at path with the output of a function. The old file stays unchanged until the output is
// complete. Only the user who runs the program can read the new file. If path is a symbolic link, replaceFile replaces
// the file that the link points to.
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

// target resolves the symbolic links in a path. If there is nothing at the path yet, target returns the path unchanged.
// If the path is a link to nothing, or leads to anything but a regular file, target returns an error.
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
