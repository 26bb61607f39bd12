#include "compiler/codegen/code_cache.h"

#include "runtime/atomic_file.h"
#include "runtime/checksum.h"
#include "runtime/file_content.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/stat.h>
#include <unistd.h>

namespace mpc::codegen {

// An entry begins with the magic and the checksum of what follows. Then come the key, the workspace, the stages and the
// code. They are numbers of 64 bits, and texts with their length in front. The last digit of the magic is the version
// of this form.
static constexpr llvm::StringLiteral magic = "mpccode1";

namespace {

class Writer {
public:
  void number(std::uint64_t value) {
    char bytes[8];
    llvm::support::endian::write64le(bytes, value);
    out.append(bytes, 8);
  }
  void text(llvm::StringRef text) {
    number(text.size());
    out += text;
  }
  std::string take() { return std::move(out); }

private:
  std::string out;
};

/// Reads what Writer wrote; `complete` says whether that was there and nothing else.
class Reader {
public:
  explicit Reader(llvm::StringRef in) : in(in) {}
  std::uint64_t number() {
    if (in.size() < 8) {
      hasFailed = true;
      return 0;
    }
    std::uint64_t value = llvm::support::endian::read64le(in.data());
    in = in.drop_front(8);
    return value;
  }
  llvm::StringRef text() {
    std::uint64_t size = number();
    if (size > in.size()) {
      hasFailed = true;
      return {};
    }
    llvm::StringRef text = in.take_front(size);
    in = in.drop_front(size);
    return text;
  }
  bool failed() const { return hasFailed; }
  bool complete() const { return !hasFailed && in.empty(); }

private:
  llvm::StringRef in;
  bool hasFailed = false;
};

} // namespace

static std::string encode(llvm::StringRef key, const CompiledFusion &region) {
  Writer content;
  content.text(key);
  content.number(region.code.workspace_bytes);
  content.number(region.code.stages.size());
  for (const Stage &each : region.code.stages) {
    content.text(each.function);
    content.number(each.blocks);
    content.number(each.threads);
    content.number(each.shared_bytes);
  }
  content.text(llvm::StringRef(reinterpret_cast<const char *>(region.bytes.data()), region.bytes.size()));
  return content.take();
}

static std::optional<CompiledFusion> decode(llvm::StringRef key, llvm::StringRef bytes) {
  Reader content(bytes);
  if (content.text() != key)
    return std::nullopt;
  CompiledFusion region;
  region.code.workspace_bytes = content.number();
  for (std::uint64_t left = content.number(); left > 0 && !content.failed(); --left) {
    Stage &each = region.code.stages.emplace_back();
    each.function = content.text().str();
    each.blocks = static_cast<std::int64_t>(content.number());
    each.threads = static_cast<unsigned>(content.number());
    each.shared_bytes = static_cast<unsigned>(content.number());
  }
  llvm::StringRef code = content.text();
  region.bytes.assign(code.begin(), code.end());
  if (!content.complete())
    return std::nullopt;
  return region;
}

static std::uint64_t checksumOf(llvm::StringRef content) {
  runtime::Checksum checksum;
  checksum.Add(content.data(), content.size());
  return checksum.value();
}

/// Why others could have changed what lies at \p path, for a message: "others may write it (mode 0777)". Empty: they
/// could not, or nothing is there.
static std::string whoElseMayWrite(const std::string &path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return "";
  std::string reason;
  llvm::raw_string_ostream out(reason);
  if (found.st_uid != ::geteuid())
    out << "it belongs to user " << found.st_uid << ", not to user " << ::geteuid();
  else if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    out << "others may write it (mode " << llvm::format("%04o", found.st_mode & 07777) << ")";
  return reason;
}

std::string CodeCache::path(llvm::StringRef key) const {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, key + ".code");
  return std::string(path);
}

std::optional<CompiledFusion> CodeCache::find(llvm::StringRef key) const {
  if (folder.empty() || !whoElseMayWrite(folder).empty() || !whoElseMayWrite(path(key)).empty())
    return std::nullopt;
  absl::StatusOr<std::vector<std::uint8_t>> file = runtime::ReadFileContent(path(key));
  if (!file.ok())
    return std::nullopt;
  llvm::StringRef bytes(reinterpret_cast<const char *>(file->data()), file->size());
  if (!bytes.consume_front(magic) || bytes.size() < 8)
    return std::nullopt;
  llvm::StringRef content = bytes.drop_front(8);
  if (llvm::support::endian::read64le(bytes.data()) != checksumOf(content))
    return std::nullopt;
  return decode(key, content);
}

std::string CodeCache::store(llvm::StringRef key, const CompiledFusion &region) const {
  if (folder.empty())
    return "";
  if (std::error_code code =
          llvm::sys::fs::create_directories(folder, /*ignoreExisting=*/true, llvm::sys::fs::owner_all))
    return "cannot create the folder '" + folder + "': " + code.message();
  if (std::string reason = whoElseMayWrite(folder); !reason.empty())
    return "the folder '" + folder + "' is not trusted with machine code: " + reason;
  std::string content = encode(key, region);
  std::string entry = magic.str();
  entry.resize(entry.size() + 8);
  llvm::support::endian::write64le(entry.data() + magic.size(), checksumOf(content));
  // Syncing would take longer than generating. A file that a crash of the machine leaves has a wrong checksum.
  absl::Status written = runtime::WriteTextFile(path(key), entry + content, {.sync = false, .permissions = 0600});
  return written.ok() ? "" : std::string(written.message());
}

} // namespace mpc::codegen
