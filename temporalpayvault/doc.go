// Package temporalpayvault runs bulk work of package payvault on Temporal, for work that one machine is too small
// for, or that must not end with a machine: card updates of tens of millions of cards, and exports of all customers
// or of the transactions of many subscriptions.
//
// [Register] gives a worker the workflows [SubmitCards] and [ExportLists] and their activities. A client starts them
// like any other workflow. [ActivityError] is for activities of your own.
//
// # Card updates
//
// An activity runs AccountUpdater.SubmitAll over a range of batches, with a [payvault.Journal] that all workers
// share. The journal knows which batches may have been sent, so no batch is sent twice, and Temporal may try again
// whatever fails or is lost. Heartbeats show that a worker is alive, and nothing else depends on them. A batch that
// was in flight when its worker was killed is of unknown outcome: it may have been performed, and somebody has to
// look it up.
//
// # Secrets
//
// Cards are passed by reference and range, see [CardSource]. Histories and heartbeats hold numbers of batches,
// status, codes and the texts of the service, cleared as errors of package payvault are. Texts of a CardSource or a
// Sink are left out, since they may quote a card. The message and type of a [temporal.ApplicationError] of theirs stay.
// [NewConverters] encrypts everything that is passed.
package temporalpayvault
