package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replaceFile puts what write writes under path only when all of it is there: an export that fails or is interrupted leaves
// the file of the last one alone. Only the user can read it.
func replaceFile(path string, write func(io.Writer) error) error {
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
