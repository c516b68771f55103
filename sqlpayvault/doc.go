// Package sqlpayvault keeps the journal of SubmitAll of package payvault in a database. So a run that was killed can be
// continued, and no batch is sent twice. Open a [Journal] for each run, give it to SubmitAll with a Job name that
// identifies the cards, and close it after the run; see the example.
//
// [Open] keeps the journal in an SQLite file. The driver for SQLite is included. [New] keeps the journal in Postgres,
// through a driver such as github.com/jackc/pgx/v5/stdlib.
//
// # Durability
//
// Begin and End return when the database has committed their changes. In an SQLite file, the changes of Begin survive a
// power cut, but the latest outcomes may be lost: then the outcomes of their batches are unknown. A file that was moved
// or copied without its latest batches is refused. Do not restore a backup that is older than the last run: Open
// refuses such a backup only beside the -wal file of a killed run.
//
// # Leases
//
// A job has one run at a time, which holds the lease of the job. A second run is refused with [ErrRunning]. The lease
// of a run that was killed ends by itself, see [WithLease]. If a run was frozen for longer than its lease, another run
// takes over the job. When the frozen run continues, it begins no further batch. No batch is sent twice, because the
// journal lets only one run begin a batch. [WithoutLease] is for jobs that several processes work on, such as the jobs
// of package temporalpayvault.
//
// # Tables
//
// The journal makes the tables payvault_jobs and payvault_batches if they do not exist. They contain no card data. A
// row of payvault_batches has the name of the job, the number of the batch, its number of cards, and the answer of the
// service. Secrets are removed from the answer, as in the errors of package payvault. Rows stay until you delete them.
// To change a row, use only [Journal.Resolve].
//
// A batch that was begun and not ended may have reached the service. A batch of status "unknown" may have reached it
// too. No run sends such a batch again. [Journal.Unresolved] lists these batches. Look each of them up at the service,
// and record the result by [Journal.Resolve].
package sqlpayvault
