package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
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

// heading is the first line.
type heading struct {
	Cards string `json:"cards_sha256"` // the numbers of the batches mean nothing for another file
}

// checkpoint is a journal on disk: lines are only ever added. A line is in force when its end is there; what a crash has cut
// off is dropped when the file is opened again.
type checkpoint struct {
	file   *os.File
	lock   *flock.Flock
	last   map[int]entry
	broken error // no line may follow one that could not be written whole
}

var (
	errOtherCards = errors.New("the checkpoint is that of other cards")
	errInUse      = errors.New("another run is using the checkpoint")
)

// openCheckpoint reads the checkpoint of the cards with a digest, or starts one. No other process can use it meanwhile; the
// lock is the system's, and ends with the process.
func openCheckpoint(path, digest string) (*checkpoint, error) {
	lock := flock.New(path + ".lock")
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = errInUse
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &checkpoint{lock: lock, last: map[int]entry{}}
	if err := c.open(path, digest); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), c.Close())
	}
	return c, nil
}

func (c *checkpoint) open(path, digest string) (err error) {
	if c.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil { //nolint:gosec // the user's own file is the point
		return err
	}
	end, err := c.read(digest)
	if err != nil {
		return err
	}
	if err := c.file.Truncate(end); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	if err := c.write(heading{digest}); err != nil {
		return err
	}
	return errors.Join(c.file.Sync(), syncDir(filepath.Dir(path)))
}

// read returns where the last whole line ends.
func (c *checkpoint) read(digest string) (end int64, err error) {
	for r := bufio.NewReader(c.file); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err == nil && end == 0 {
			err = readHeading(line, digest)
		} else if err == nil {
			err = c.readEntry(line)
		}
		if err != nil {
			return 0, err
		}
		end += int64(len(line))
	}
}

func readHeading(line []byte, digest string) error {
	var h heading
	if err := json.Unmarshal(line, &h); err != nil {
		return fmt.Errorf("not a checkpoint: %w", err)
	}
	if h.Cards != digest {
		return errOtherCards
	}
	return nil
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

// settle records what somebody has found out about a batch of unknown outcome.
func (c *checkpoint) settle(batch int, found state) error {
	if state := c.last[batch].State; state != unknown {
		return fmt.Errorf("the outcome of batch %d is not unknown", batch)
	}
	return c.record(entry{Batch: batch, State: found, Error: "settled by hand"})
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
func (c *checkpoint) Close() error {
	var err error
	if c.file != nil {
		err = errors.Join(c.file.Sync(), c.file.Close())
	}
	return errors.Join(err, c.lock.Close())
}

// syncDir puts the name of a new file on disk, where the system has a way to.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path) //nolint:gosec // that of the user's own file
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
