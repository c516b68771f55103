// Package sqlpayvault keeps the journal of a SubmitAll of package payvault in a database, so that a run that was killed
// goes on and sends no batch twice. Open a [Journal] for each run, give it to SubmitAll with a Job that names the
// cards, and close it; see the example.
//
// [Open] keeps it in a file, by SQLite, which is linked in. [New] takes a database that is open already: Postgres, by a
// driver such as github.com/jackc/pgx/v5/stdlib, or SQLite by a driver of your choice.
//
// # What is promised
//
// Begin and End return when the database has committed what they write, so it is as durable as the database's commits
// are; those of a file of Open survive a power cut. Those that are called at the same time share a commit.
//
// One run of a job goes on at a time: a second one is refused with [ErrRunning]. The lease of a run that was killed
// ends by itself, see [WithLease]. Should two runs be at work all the same, since one of them was frozen for longer
// than that, no batch is sent twice: each is begun by one of them only. [WithoutLease] is for jobs that are meant to be
// worked on by several, such as those of package temporalpayvault.
//
// # Tables
//
// The journal makes the tables payvault_jobs and payvault_batches when they are not there. They hold no card data:
// the name of the job, the number of each batch and of its cards, and what the service said of it, cleared as
// errors are. Rows stay until you delete them.
//
// A batch of status "begun" or "unknown" may have arrived, and is never sent again. When somebody has looked it up, and
// no run is at work, set its status to "accepted", or to "not sent", so that the next run sends it; [Journal.End] does
// so too.
package sqlpayvault
