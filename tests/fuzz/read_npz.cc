#include "frontend/data/npz_file.h"
#include "frontend/graph/npy.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {
namespace {

void ReadMembers(absl::Span<const std::uint8_t> input, data::internal::StoredMembers stored) {
  const absl::StatusOr<std::vector<data::internal::ArchiveMember>> members =
      data::internal::ParseArchive(input, kOrigin, stored);
  if (!members.ok()) return RequireRefusal(members.status());
  for (const data::internal::ArchiveMember& member : *members) {
    RequireReadable(member.content());
    const absl::StatusOr<mpc::internal::NpyLayout> layout = mpc::internal::ParseNpyLayout(member.content(), kOrigin);
    if (!layout.ok()) {
      RequireRefusal(layout.status());
    } else {
      Require(layout->elements_begin + layout->spec.bytes() == member.content().size(),
              "the elements are not those of the header");
    }
  }
}

}  // namespace

void ReadNpz(absl::Span<const std::uint8_t> input) {
  ReadMembers(input, data::internal::StoredMembers::kVerified);
  ReadMembers(input, data::internal::StoredMembers::kUnread);
}

}  // namespace mpc::fuzz
