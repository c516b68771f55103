package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// state is what is known of a batch.
type state string

const (
	sending  state = "sending"  // about to be sent; after a crash it may have been
	accepted state = "accepted" // the service has it
	refused  state = "refused"  // the service does not want it
	notSent  state = "not sent" // nothing of it reached the service, or it was turned away unperformed
	unknown  state = "unknown"  // it was sent, and no answer came
)

// mayBeSent tells whether sending the batch cannot submit it twice. The zero state is that of a batch nothing is known of.
func (s state) mayBeSent() bool { return s == "" || s == notSent || s == refused }

// entry is a line of the checkpoint. The last one about a batch counts.
type entry struct {
	Batch     int    `json:"batch"`
	State     state  `json:"state"`
	RequestID string `json:"request_id,omitzero"`
	Error     string `json:"error,omitzero"`
}

// heading is the first line. It says what the numbers of the batches mean: nothing for other cards, and what one service
// has, another one has not.
type heading struct {
	Cards    string `json:"cards_sha256"`
	Service  string `json:"base_url"`
	Merchant string `json:"merchant_id"`
}

// check tells why a checkpoint is not the one that is wanted.
func (h heading) check(want heading) error {
	if h.Cards != want.Cards {
		return errOtherCards
	}
	if h != want {
		return fmt.Errorf("%w: of merchant %s at %s, not of merchant %s at %s", errOtherService, h.Merchant, h.Service, want.Merchant, want.Service)
	}
	return nil
}

// checkpoint is a journal on disk: lines are only ever added. A line is in force when its end is there; what a crash has cut
// off is dropped when the file is opened again.
type checkpoint struct {
	file   *os.File
	last   map[int]entry
	broken error // no line may follow one that could not be written whole
}

var (
	errOtherCards   = errors.New("the checkpoint is that of other cards")
	errOtherService = errors.New("the checkpoint is that of another service or merchant")
	errNoCheckpoint = errors.New("not a checkpoint")
	errInUse        = errors.New("another run is using the checkpoint")
)

// headingStart is what every checkpoint starts with.
const headingStart = `{"cards_sha256":"`

// openCheckpoint reads a checkpoint, or starts one. No other process can use it meanwhile. The lock is on the file itself,
// whatever names it has; it is the system's, and ends with the process.
func openCheckpoint(path string, of heading) (*checkpoint, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the user's own file is the point
	if err != nil {
		return nil, err
	}
	c := &checkpoint{file: file, last: map[int]entry{}}
	if err = lock(file); err == nil {
		err = c.load(of)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return c, nil
}

func (c *checkpoint) load(of heading) error {
	end, err := c.read(of)
	if err != nil {
		return err
	}
	if err := c.file.Truncate(end); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	if err := c.write(of); err != nil {
		return err
	}
	return errors.Join(c.file.Sync(), syncDir(c.file.Name()))
}

// read returns where the last whole line ends.
func (c *checkpoint) read(of heading) (end int64, err error) {
	for r := bufio.NewReader(c.file); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if end == 0 && !bytes.HasPrefix([]byte(headingStart), line[:min(len(line), len(headingStart))]) {
				return 0, errNoCheckpoint // somebody's file that must not be cut off
			}
			return end, nil
		}
		if err == nil && end == 0 {
			err = readHeading(line, of)
		} else if err == nil {
			err = c.readEntry(line)
		}
		if err != nil {
			return 0, err
		}
		end += int64(len(line))
	}
}

func readHeading(line []byte, want heading) error {
	var h heading
	if err := json.Unmarshal(line, &h); err != nil || h.Cards == "" {
		return errNoCheckpoint
	}
	return h.check(want)
}

// readEntry takes a batch that was being sent when the program died for one of unknown outcome.
func (c *checkpoint) readEntry(line []byte) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	switch e.State {
	case sending:
		e.State = unknown
	case accepted, refused, notSent, unknown:
	default:
		return fmt.Errorf("damaged: batch %d is %q", e.Batch, e.State)
	}
	c.last[e.Batch] = e
	return nil
}

// intend says that a batch is about to be sent. When it returns nil that is on disk, and survives a power cut.
func (c *checkpoint) intend(batch int) error {
	if state := c.last[batch].State; !state.mayBeSent() {
		return fmt.Errorf("batch %d is %s", batch, state) // the last guard of the promise
	}
	if err := c.record(entry{Batch: batch, State: sending}); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		c.broken = err
		return err
	}
	return nil
}

// record adds a line.
func (c *checkpoint) record(e entry) error {
	if err := c.write(e); err != nil {
		return err
	}
	c.last[e.Batch] = e
	return nil
}

// settle records what somebody has found out about batches of unknown outcome: of all of them, or of none if one is not.
func (c *checkpoint) settle(found map[int]state) error {
	batches := slices.Sorted(maps.Keys(found))
	for _, batch := range batches {
		if c.last[batch].State != unknown {
			return fmt.Errorf("the outcome of batch %d is not unknown; nothing was settled", batch)
		}
	}
	for _, batch := range batches {
		if err := c.record(entry{Batch: batch, State: found[batch], Error: "settled by hand"}); err != nil {
			return err
		}
	}
	return nil
}

func (c *checkpoint) write(line any) error {
	if c.broken != nil {
		return c.broken
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, c.broken = c.file.Write(append(text, '\n'))
	return c.broken
}

// Close puts all that was recorded on disk.
func (c *checkpoint) Close() error { return errors.Join(c.file.Sync(), c.file.Close()) }

// syncDir puts the name of a new file on disk, where the system has a way to.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
