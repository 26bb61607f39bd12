#include "frontend/distributed/exchange.h"

#include <algorithm>

namespace mpc::distributed {

absl::Status BroadcastBytes(Communicator& communicator, std::string& bytes, int root) {
  auto size = static_cast<std::uint64_t>(bytes.size());
  if (absl::Status status = communicator.Broadcast(&size, sizeof size, root); !status.ok()) return status;
  std::string sent = communicator.rank() == root ? bytes : std::string(size, '\0');
  if (absl::Status status = communicator.Broadcast(sent.data(), sent.size(), root); !status.ok()) return status;
  bytes = std::move(sent);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> GatherBytes(Communicator& communicator, std::string_view bytes) {
  const auto size = static_cast<std::uint64_t>(bytes.size());
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<std::uint64_t> sizes(ranks);
  if (absl::Status status = communicator.AllGather(&size, sizes.data(), sizeof size); !status.ok()) return status;
  const std::uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::string own(bytes);
  own.resize(largest);
  std::string all(largest * ranks, '\0');
  if (absl::Status status = communicator.AllGather(own.data(), all.data(), largest); !status.ok()) return status;
  std::vector<std::string> gathered;
  for (std::size_t rank = 0; rank < ranks; ++rank) gathered.push_back(all.substr(rank * largest, sizes[rank]));
  return gathered;
}

absl::StatusOr<std::int64_t> AgreeOnMaximum(Communicator& communicator, std::int64_t number) {
  const absl::Status status = AgreeOnMaxima(communicator, absl::MakeSpan(&number, 1));
  if (!status.ok()) return status;
  return number;
}

absl::Status AgreeOnMaxima(Communicator& communicator, absl::Span<std::int64_t> numbers) {
  const ReducedPart part{.input = numbers.data(),
                         .output = numbers.data(),
                         .elements = numbers.size(),
                         .dtype = DType::kI64,
                         .reduction = Reduction::kMax};
  return communicator.AllReduce({part});
}

}  // namespace mpc::distributed
