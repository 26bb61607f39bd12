#include "frontend/data/npz_file.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::data::internal {
namespace {

// Sizes and places of fields: PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16.
constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::uint32_t kEntryMagic = 0x02014b50;
constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::size_t kLocalBytes = 30;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kLongestComment = 0xffff;
constexpr std::uint32_t kStored = 0;
constexpr std::uint32_t kDeflated = 8;

using Bytes = absl::Span<const std::uint8_t>;

/// A little-endian number of `size` bytes.
std::uint32_t Number(Bytes bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | bytes[at + i];
  return value;
}

/// Part of `bytes`, or none if they end before.
bool Part(Bytes bytes, std::size_t begin, std::size_t size, Bytes* part) {
  if (begin > bytes.size() || size > bytes.size() - begin) return false;
  *part = bytes.subspan(begin, size);
  return true;
}

struct Entry {
  std::string name;
  std::uint32_t flags = 0;
  std::uint32_t method = 0;
  std::uint32_t checksum = 0;
  std::uint32_t packed_bytes = 0;
  std::uint32_t bytes = 0;
  std::uint32_t begin = 0;
};

class Archive {
 public:
  Archive(Bytes content, const std::string& origin, StoredMembers stored)
      : content_(content), origin_(origin), stored_(stored) {}

  absl::StatusOr<std::vector<ArchiveMember>> Read() const {
    Bytes end;
    if (!FindEnd(&end))
      return Error("is not an .npz archive, or it is truncated: the directory of a ZIP file is missing");
    const std::uint32_t entries = Number(end, 10, 2);
    std::size_t at = Number(end, 16, 4);
    if (entries == 0xffff || at == 0xffffffff) return Error("has 4 GiB or more, or 65,535 members, which are not read");
    std::vector<ArchiveMember> members;
    std::size_t packed_bytes = 0;
    for (std::uint32_t i = 0; i < entries; ++i) {
      Entry entry;
      if (!ReadEntry(&at, &entry)) return Error("is damaged: its directory does not hold what it declares");
      absl::StatusOr<ArchiveMember> member = ReadMember(entry);
      if (!member.ok()) return member.status();
      // Members that share their bytes could take memory for each of them: a bomb.
      packed_bytes += member->packed.size();
      if (packed_bytes > content_.size()) return Error("is damaged: its members overlap");
      members.push_back(*std::move(member));
    }
    return members;
  }

 private:
  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(origin_, " ", what));
  }

  /// The directory's end is the last 22 bytes, before a comment.
  bool FindEnd(Bytes* end) const {
    for (std::size_t comment = 0; comment <= kLongestComment; ++comment) {
      if (content_.size() < kEndBytes + comment) return false;
      *end = content_.subspan(content_.size() - kEndBytes - comment, kEndBytes);
      if (Number(*end, 0, 4) == kEndMagic && Number(*end, 20, 2) == comment) return true;
    }
    return false;
  }

  bool ReadEntry(std::size_t* at, Entry* entry) const {
    Bytes fixed;
    Bytes name;
    if (!Part(content_, *at, kEntryBytes, &fixed) || Number(fixed, 0, 4) != kEntryMagic) return false;
    const std::size_t name_bytes = Number(fixed, 28, 2);
    if (!Part(content_, *at + kEntryBytes, name_bytes, &name)) return false;
    *entry = {.name = std::string(name.begin(), name.end()),
              .flags = Number(fixed, 8, 2),
              .method = Number(fixed, 10, 2),
              .checksum = Number(fixed, 16, 4),
              .packed_bytes = Number(fixed, 20, 4),
              .bytes = Number(fixed, 24, 4),
              .begin = Number(fixed, 42, 4)};
    *at += kEntryBytes + name_bytes + Number(fixed, 30, 2) + Number(fixed, 32, 2);
    return true;
  }

  absl::StatusOr<ArchiveMember> ReadMember(const Entry& entry) const {
    const std::string member = absl::StrCat("member '", entry.name, "' ");
    Bytes local;
    if (!Part(content_, entry.begin, kLocalBytes, &local) || Number(local, 0, 4) != kLocalMagic) {
      return Error(absl::StrCat("is damaged: ", member, "has no header"));
    }
    Bytes packed;
    const std::size_t begin = entry.begin + kLocalBytes + Number(local, 26, 2) + Number(local, 28, 2);
    if (!Part(content_, begin, entry.packed_bytes, &packed)) {
      return Error(absl::StrCat("is truncated: ", member, "takes ", entry.packed_bytes, " bytes"));
    }
    if ((entry.flags & 1) != 0 || (entry.method != kStored && entry.method != kDeflated)) {
      return Error(absl::StrCat("is not read: ", member, "is encrypted or has method ", entry.method,
                                "; accepted are stored (0) and deflated (8)"));
    }
    ArchiveMember read{.name = entry.name, .packed = packed};
    const bool stored = entry.method == kStored;
    const bool unpacked = stored ? packed.size() == entry.bytes : Inflate(packed, entry, &read.inflated.emplace());
    const bool unread = stored && stored_ == StoredMembers::kUnread;
    if (!unpacked || (!unread && Checksum(read.content()) != entry.checksum)) {
      return Error(absl::StrCat("is damaged: ", member, "does not have its size and checksum"));
    }
    return read;
  }

  static uLong Checksum(Bytes bytes) { return ::crc32(0, bytes.data(), static_cast<uInt>(bytes.size())); }

  static bool Inflate(Bytes packed, const Entry& entry, std::vector<std::uint8_t>* inflated) {
    // Deflate shrinks by less than 1,032: a size beyond that is not one that the packed bytes can have.
    if (entry.bytes / 1032 > packed.size()) return false;
    inflated->resize(entry.bytes);
    z_stream stream = {};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
    stream.next_in = const_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = inflated->data();
    stream.avail_out = static_cast<uInt>(inflated->size());
    const int code = ::inflate(&stream, Z_FINISH);
    const bool whole = code == Z_STREAM_END && stream.avail_out == 0;
    ::inflateEnd(&stream);
    return whole;
  }

  Bytes content_;
  const std::string& origin_;
  StoredMembers stored_;
};

}  // namespace

absl::StatusOr<std::vector<ArchiveMember>> ParseArchive(absl::Span<const std::uint8_t> content,
                                                        const std::string& origin, StoredMembers stored) {
  return Archive(content, origin, stored).Read();
}

}  // namespace mpc::data::internal
