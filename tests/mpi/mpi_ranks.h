// What a process that mpirun has started for a test does.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace mpc::distributed {

/// Ends the process with status 1 and a line on standard error unless `holds`.
void Expect(bool holds, std::string_view what);
void ExpectOk(const absl::Status& status, std::string_view what);

/// Writes a line on standard output at once, so that a process that is killed next has written it.
void Say(std::string_view line);

/// Results of a whole group: the bits of the plain tree, copies, and what else a group can do.
void Results();
/// Sums in MPI's own order: those that have one value in every order, and that all ranks have the same bits.
void SumsInAnyOrder();
/// Messages that are longer than one of MPI.
void LongMessages();
/// What can be told of opening: twice at once, with another number of processes, after MPI has ended.
void Opening();

/// distributed::Init finds the others through the launcher's variables, and MPI carries what they exchange.
void InitOverMpi();

/// Rank 1 does not do what the others do. They write the error that they get.
void RankLeaves();
void RankFails();
void RankStops();
void RankFailsInAnyOrder();
void RankStopsInAnyOrder();
void RankSendsLess();
void RankSendsMore();
void RankCallsInAnotherThread();
/// Rank 1 of a group of Init says that it has failed, and goes on.
void RankOfInitFails();

/// Rank 1 ends, and mpirun ends the others.
void RankExits();
void RankIsKilled();
void RankNeverOpens();

}  // namespace mpc::distributed
