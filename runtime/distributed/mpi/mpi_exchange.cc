#include "runtime/distributed/mpi/mpi_exchange.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/distributed/mpi/mpi_process.h"

namespace mpc::distributed {
namespace {

// MPI counts in int. The time limit is for one message, so a message is not longer than it must be.
constexpr std::size_t kMessageBytes = std::size_t{64} << 20;
static_assert(kMessageBytes < std::size_t{1} << 30);

constexpr std::chrono::milliseconds kLookEvery{1};
constexpr std::chrono::milliseconds kAskEvery{100};
constexpr std::chrono::milliseconds kFarewell{100};  // what small messages get to leave a process that has failed

enum Tag : int { kData, kLeft, kFailed };

/// The part of `bytes` that message number begin / kMessageBytes holds.
template <typename Byte>
absl::Span<Byte> Message(absl::Span<Byte> bytes, std::size_t begin) {
  return begin < bytes.size() ? bytes.subspan(begin, kMessageBytes) : absl::Span<Byte>();
}

/// Takes back receives that no message has met yet.
void Cancel(absl::Span<MPI_Request> receives) {
  for (MPI_Request& request : receives) {
    if (request == MPI_REQUEST_NULL) continue;
    int complete = 0;
    if (MPI_Cancel(&request) == MPI_SUCCESS) MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  }
}

bool HasMessage(MPI_Comm communicator, int source, Tag tag, int* from) {
  int found = 0;
  MPI_Status status;
  if (MPI_Iprobe(source, tag, communicator, &found, &status) != MPI_SUCCESS || found == 0) return false;
  *from = status.MPI_SOURCE;
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiExchange>> MpiExchange::Open(std::chrono::milliseconds timeout, WaitHook on_wait) {
  std::unique_ptr<MpiExchange> exchange(new MpiExchange(timeout, std::move(on_wait)));
  if (absl::Status status = exchange->Duplicate(); !status.ok()) return status;
  return exchange;
}

absl::Status MpiExchange::Duplicate() {
  int level = MPI_THREAD_SINGLE;
  if (absl::Status status = StatusOfMpi(MPI_Query_thread(&level), "MPI_Query_thread"); !status.ok()) return status;
  any_thread_ = level >= MPI_THREAD_SERIALIZED;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  // MPI_Comm_dup would wait for the others without a limit.
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  absl::Status status = StatusOfMpi(MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request), "MPI_Comm_idup");
  if (status.ok()) status = Wait(MPI_ANY_SOURCE, {&request, 1}, Clock::now());
  if (status.ok()) {
    communicator_ = duplicate;
    status = StatusOfMpi(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  return status;
}

absl::Status MpiExchange::CheckThread() const {
  if (any_thread_ || std::this_thread::get_id() == thread_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("transport \"mpi\": ", function_, " was called in another thread",
                                                    " than the one that opened the group"));
}

absl::Status MpiExchange::Exchange(int peer, absl::Span<const std::byte> send, absl::Span<std::byte> receive) {
  if (absl::Status status = CheckThread(); !status.ok()) return status;
  const std::size_t most = std::max(send.size(), receive.size());
  for (std::size_t begin = 0; begin < most; begin += kMessageBytes) {
    absl::Status status = ExchangeMessage(peer, Message(send, begin), Message(receive, begin));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MpiExchange::ExchangeMessage(int peer, absl::Span<const std::byte> send, absl::Span<std::byte> receive) {
  const Clock::time_point start = Clock::now();
  std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (!send.empty()) {
    const int code =
        MPI_Isend(send.data(), static_cast<int>(send.size()), MPI_BYTE, peer, kData, communicator_, &requests[0]);
    if (code != MPI_SUCCESS) return Failure(peer, code);
  }
  absl::Status status;
  if (!receive.empty()) status = StartReceive(peer, receive, start, &requests[1]);
  if (status.ok()) status = Wait(peer, absl::MakeSpan(requests), start);
  // A process that failed may change what it sent before it is read: shared memory is read by the receiver.
  if (status.ok()) status = LookForFailure(peer);
  return status;
}

absl::Status MpiExchange::StartReceive(int peer, absl::Span<std::byte> receive, Clock::time_point start,
                                       MPI_Request* request) {
  // The message comes before the receive, so that its size is known. Open MPI 4.1 writes behind the memory of a receive
  // that is too small for its message.
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status found;
  absl::Status status = Until(peer, start, [&](bool* done) {
    int is_there = 0;
    const int code = MPI_Improbe(peer, kData, communicator_, &is_there, &message, &found);
    *done = is_there != 0;
    return code;
  });
  if (!status.ok()) return status;
  int bytes = 0;
  if (const int code = MPI_Get_count(&found, MPI_BYTE, &bytes); code != MPI_SUCCESS) return Failure(peer, code);
  if (static_cast<std::size_t>(bytes) != receive.size()) {
    return absl::InvalidArgumentError(absl::StrCat("transport \"mpi\": rank ", rank_, " expected ", receive.size(),
                                                   " bytes of rank ", peer, " in ", function_, " and got ", bytes,
                                                   "; all ranks must call the same functions with the same sizes"));
  }
  const int code = MPI_Imrecv(receive.data(), bytes, MPI_BYTE, &message, request);
  return code == MPI_SUCCESS ? absl::OkStatus() : Failure(peer, code);
}

absl::Status MpiExchange::AllReduce(const void* input, void* output, std::size_t count, MPI_Datatype element,
                                    MPI_Op operation) {
  if (absl::Status status = CheckThread(); !status.ok()) return status;
  int size = 0;
  if (const int code = MPI_Type_size(element, &size); code != MPI_SUCCESS) return Failure(MPI_ANY_SOURCE, code);
  const auto element_bytes = static_cast<std::size_t>(size);
  const std::size_t most = kMessageBytes / element_bytes;
  for (std::size_t begin = 0; begin < count; begin += most) {
    const std::size_t offset = begin * element_bytes;
    const int elements = static_cast<int>(std::min(most, count - begin));
    const void* const from = input == output ? MPI_IN_PLACE : static_cast<const std::byte*>(input) + offset;
    MPI_Request request = MPI_REQUEST_NULL;
    const Clock::time_point start = Clock::now();
    const int code = MPI_Iallreduce(from, static_cast<std::byte*>(output) + offset, elements, element, operation,
                                    communicator_, &request);
    if (code != MPI_SUCCESS) return Failure(MPI_ANY_SOURCE, code);
    absl::Status status = Wait(MPI_ANY_SOURCE, {&request, 1}, start);
    if (status.ok()) status = LookForFailure(MPI_ANY_SOURCE);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename Test>
absl::Status MpiExchange::Until(int peer, Clock::time_point start, const Test& test) {
  Clock::time_point next_look = start + kLookEvery;
  Clock::time_point next_question = start + kAskEvery;
  absl::Status reason;
  for (;;) {
    bool done = false;
    if (const int code = test(&done); code != MPI_SUCCESS) return Failure(peer, code);
    if (done) return absl::OkStatus();
    // The last test comes after the look: what a process sent before it left has arrived.
    if (!reason.ok()) return reason;
    if (const Clock::time_point now = Clock::now(); now >= next_look) {
      reason = Look(peer, now - start);
      next_look = now + kLookEvery;
      if (reason.ok() && on_wait_ && now >= next_question) {
        reason = on_wait_(function_);
        next_question = now + kAskEvery;
      }
    }
    std::this_thread::yield();
  }
}

absl::Status MpiExchange::Wait(int peer, absl::Span<MPI_Request> requests, Clock::time_point start) {
  return Until(peer, start, [&](bool* done) {
    *done = true;
    for (MPI_Request& request : requests) {  // MPI_Testall would not say which error it was
      int complete = 0;
      if (const int code = MPI_Test(&request, &complete, MPI_STATUS_IGNORE); code != MPI_SUCCESS) return code;
      *done = *done && complete != 0;
    }
    return MPI_SUCCESS;
  });
}

absl::Status MpiExchange::Look(int peer, Clock::duration waited) const {
  if (absl::Status status = LookForFailure(peer); !status.ok()) return status;
  int from = 0;
  if (peer != MPI_ANY_SOURCE && HasMessage(communicator_, peer, kLeft, &from)) {
    return absl::UnavailableError(absl::StrCat("transport \"mpi\": rank ", from, " has left the group; rank ", rank_,
                                               " waited for it in ", function_));
  }
  if (waited < timeout_) return absl::OkStatus();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(waited).count();
  return absl::DeadlineExceededError(absl::StrCat("transport \"mpi\": rank ", rank_, " has waited ", milliseconds,
                                                  " ms for ", Who(peer), " in ", function_));
}

absl::Status MpiExchange::LookForLoss() const {
  if (absl::Status status = CheckThread(); !status.ok()) return status;
  if (absl::Status status = LookForFailure(MPI_ANY_SOURCE); !status.ok()) return status;
  int from = 0;
  if (!HasMessage(communicator_, MPI_ANY_SOURCE, kLeft, &from)) {
    return on_wait_ ? on_wait_(kWaitOfDevice) : absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("transport \"mpi\": rank ", from, " has left the group"));
}

absl::Status MpiExchange::LookForFailure(int peer) const {
  int from = 0;
  if (communicator_ == MPI_COMM_NULL || !HasMessage(communicator_, MPI_ANY_SOURCE, kFailed, &from)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("transport \"mpi\": rank ", from, " has failed; rank ", rank_,
                                             " waited for ", Who(peer), " in ", function_));
}

absl::Status MpiExchange::Failure(int peer, int code) const {
  return StatusOfMpi(code, absl::StrCat("rank ", rank_, " lost ", Who(peer), " in ", function_));
}

std::string MpiExchange::Who(int peer) const {
  return peer == MPI_ANY_SOURCE ? std::string("the other ranks") : absl::StrCat("rank ", peer);
}

absl::Status MpiExchange::Leave() {
  if (absl::Status status = CheckThread(); !status.ok()) return status;
  const auto others = static_cast<std::size_t>(size_ - 1);
  std::vector<MPI_Request> requests(2 * others, MPI_REQUEST_NULL);
  const absl::Span<MPI_Request> receives(requests.data(), others);
  absl::Status status;
  for (std::size_t i = 0; i < others && status.ok(); ++i) {
    const int peer = (rank_ + 1 + static_cast<int>(i)) % size_;
    // Messages without bytes need no memory that outlives them.
    int code = MPI_Irecv(nullptr, 0, MPI_BYTE, peer, kLeft, communicator_, &receives[i]);
    if (code == MPI_SUCCESS) {
      code = MPI_Isend(nullptr, 0, MPI_BYTE, peer, kLeft, communicator_, &requests[others + i]);
    }
    if (code != MPI_SUCCESS) status = Failure(peer, code);
  }
  if (status.ok()) status = Wait(MPI_ANY_SOURCE, absl::MakeSpan(requests), Clock::now());
  if (!status.ok()) {
    Cancel(receives);
    return status;
  }
  return StatusOfMpi(MPI_Comm_free(&communicator_), "MPI_Comm_free");
}

void MpiExchange::Fail() {
  if (!CheckThread().ok()) return;
  std::vector<MPI_Request> sends;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    MPI_Request send = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_BYTE, peer, kFailed, communicator_, &send) == MPI_SUCCESS) sends.push_back(send);
  }
  const Clock::time_point end = Clock::now() + kFarewell;
  int complete = 0;
  while (complete == 0 && Clock::now() < end) {
    if (MPI_Testall(static_cast<int>(sends.size()), sends.data(), &complete, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
    std::this_thread::yield();
  }
}

}  // namespace mpc::distributed
