#include "runtime/program_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/atomic_file.h"
#include "runtime/checksum.h"
#include "runtime/file_content.h"
#include "runtime/program_check.h"
#include "runtime/program_encoding.h"

namespace mpc::runtime {
namespace {

constexpr std::size_t kMaxBlobBytes = std::size_t{1} << 30;

// The header, little-endian: magic, version (u32), bytes of the tables (u64), checksum (u32) of version, size and
// tables, four zeros. The tables then begin on an 8-byte boundary.
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kSizeAt = 8;
constexpr std::size_t kChecksumAt = 16;
constexpr std::size_t kHeaderBytes = 24;
using Header = std::array<std::uint8_t, kHeaderBytes>;

void Store(std::uint64_t value, std::size_t bytes, std::uint8_t* to) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::uint64_t Fetch(const std::uint8_t* from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | from[i];
  return value;
}

std::uint32_t ChecksumOf(const std::uint8_t* header, absl::Span<const std::uint8_t> tables) {
  Checksum checksum;
  checksum.Add(header + kVersionAt, kChecksumAt - kVersionAt);
  checksum.Add(tables.data(), tables.size());
  return checksum.value();
}

Header MakeHeader(absl::Span<const std::uint8_t> tables) {
  Header header{};
  std::memcpy(header.data(), kProgramFileMagic.data(), kProgramFileMagic.size());
  Store(kProgramFileVersion, 4, header.data() + kVersionAt);
  Store(tables.size(), 8, header.data() + kSizeAt);
  Store(ChecksumOf(header.data(), tables), 4, header.data() + kChecksumAt);
  return header;
}

std::string Beginning(absl::Span<const std::uint8_t> content) {
  if (content.empty()) return "it is empty";
  const std::size_t shown = std::min<std::size_t>(content.size(), 8);
  return absl::StrCat("it begins with \"", absl::CEscape({reinterpret_cast<const char*>(content.data()), shown}),
                      "\", not with \"", std::string(kProgramFileMagic), "\"");
}

absl::Status CheckHeader(absl::Span<const std::uint8_t> content, const std::string& origin) {
  const std::size_t magic = std::min(content.size(), kProgramFileMagic.size());
  if (content.empty() || std::memcmp(content.data(), kProgramFileMagic.data(), magic) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is not an .mpcx file: ", Beginning(content)));
  }
  if (content.size() < kHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is truncated: it has ", content.size(),
                                                   " bytes, its header alone takes ", kHeaderBytes));
  }
  const std::uint64_t version = Fetch(content.data() + kVersionAt, 4);
  if (version != kProgramFileVersion) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " has format version ", version, "; this mpc reads version ",
                                                   kProgramFileVersion,
                                                   version > kProgramFileVersion ? "; a newer one may read it" : ""));
  }
  const std::uint64_t expected = Fetch(content.data() + kSizeAt, 8);
  const std::uint64_t found = content.size() - kHeaderBytes;
  if (found != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, found < expected ? " is truncated: " : " is too long: ", "its header tells of ", expected,
                     " bytes behind it, it has ", found));
  }
  const std::uint64_t stored = Fetch(content.data() + kChecksumAt, 4);
  const std::uint32_t computed = ChecksumOf(content.data(), content.subspan(kHeaderBytes));
  if (stored != computed || Fetch(content.data() + kChecksumAt + 4, 4) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is damaged: its checksum is ", absl::Hex(stored),
                                                   ", its content gives ", absl::Hex(computed)));
  }
  return absl::OkStatus();
}

/// Collects what is wrong with a package.
class PackageChecker {
 public:
  explicit PackageChecker(const Package& package) : package_(package) {}

  absl::Status Check() {
    std::set<std::string> names;
    for (const Program& program : package_.programs) {
      Keep(CheckProgram(program));
      if (program.name.empty()) Report("a program has no name");
      if (!names.insert(program.name).second) Report("there are two programs \"", program.name, "\"");
      CheckCode(program);
      CollectState(program);
    }
    if (package_.programs.empty()) Report("there is no program");
    for (const InitialDraw& draw : package_.draws) CheckDraw(draw);
    for (const InitialValue& initial : package_.initial_values) CheckInitialValue(initial);
    for (const auto& [name, binding] : state_) {
      if (binding->role != Role::kDerived && begins_[name] != 1) {
        Report("state \"", name, "\" has ", begins_[name], " initial values");
      }
    }
    if (problems_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
  }

 private:
  template <typename... Parts>
  void Report(const Parts&... parts) {
    problems_.push_back(absl::StrCat(parts...));
  }
  void Keep(const absl::Status& status) {
    if (!status.ok()) problems_.emplace_back(status.message());
  }

  void CheckCode(const Program& program) {
    for (const CodeBlob& blob : program.code) {
      if (blob.format != "object") continue;
      Report("program \"", program.name, "\", code \"", blob.name, "\" is in format \"object\", which is never saved");
    }
  }

  void CollectState(const Program& program) {
    for (const StateBinding& binding : program.state) {
      const auto [entry, is_new] = state_.emplace(binding.name, &binding);
      if (!is_new && (entry->second->spec != binding.spec || entry->second->role != binding.role)) {
        Report("state \"", binding.name, "\" is ", std::string(RoleName(entry->second->role)), " ",
               entry->second->spec.ToString(), " in one program, ", std::string(RoleName(binding.role)), " ",
               binding.spec.ToString(), " in \"", program.name, "\"");
      }
    }
  }

  void CheckDraw(const InitialDraw& draw) {
    const Program& program = draw.program;
    const absl::Status status = CheckProgram(program);
    if (!status.ok()) return Keep(status);
    CheckCode(program);
    if (!program.state.empty()) Report("\"", program.name, "\" has state");
    if (program.inputs.size() != 1 || program.values[program.inputs[0].value].spec != TensorSpec{DType::kI64, {}}) {
      Report("\"", program.name, "\" must have a seed as its one input");
    }
    for (const NamedValue& output : program.outputs) {
      ++begins_[output.name];
      const TensorSpec& spec = program.values[output.value].spec;
      const auto entry = state_.find(output.name);
      if (spec.dtype != DType::kF32 || (entry != state_.end() && entry->second->spec.shape != spec.shape)) {
        Report("\"", program.name, "\" draws \"", output.name, "\" as ", spec.ToString());
      }
    }
  }

  void CheckInitialValue(const InitialValue& initial) {
    ++begins_[initial.name];
    const auto entry = state_.find(initial.name);
    if (entry != state_.end() && entry->second->spec != initial.spec) {
      Report("the initial value of \"", initial.name, "\" is ", initial.spec.ToString(), ", the state ",
             entry->second->spec.ToString());
    }
    // The state's own type has been checked; an entry that no Program binds is never made.
    if (entry != state_.end() && initial.bytes.size() != initial.spec.bytes() &&
        initial.bytes.size() != ElementSize(initial.spec.dtype)) {
      Report("the initial value of \"", initial.name, "\", ", initial.spec.ToString(), ", has ", initial.bytes.size(),
             " bytes");
    }
  }

  const Package& package_;
  std::map<std::string, const StateBinding*> state_;
  std::map<std::string, int> begins_;
  std::vector<std::string> problems_;
};

}  // namespace

const Program* Package::Find(std::string_view name) const {
  for (const Program& program : programs) {
    if (program.name == name) return &program;
  }
  return nullptr;
}

std::string_view Package::Metadata(std::string_view key) const {
  for (const auto& [name, value] : metadata) {
    if (name == key) return value;
  }
  return {};
}

std::vector<StateBinding> Package::State() const {
  std::vector<StateBinding> state;
  std::map<std::string, std::size_t> positions;
  for (const Program& program : programs) {
    for (const StateBinding& binding : program.state) {
      if (binding.role == Role::kDerived) continue;
      const auto [position, is_new] = positions.emplace(binding.name, state.size());
      if (is_new) state.push_back(binding);
      state[position->second].written |= binding.written;
    }
  }
  return state;
}

absl::Status CheckPackage(const Package& package) { return PackageChecker(package).Check(); }

absl::StatusOr<std::vector<std::uint8_t>> SerializePackage(const Package& package) {
  if (absl::Status status = CheckPackage(package); !status.ok()) return status;
  std::size_t blobs = 0;
  for (const Program& program : package.programs) {
    blobs += program.constants.size();
    for (const CodeBlob& blob : program.code) blobs += blob.bytes.size();
  }
  for (const InitialDraw& draw : package.draws) blobs += draw.program.constants.size();
  if (blobs > kMaxBlobBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a package holds at most ", kMaxBlobBytes, " bytes of constants and code, these are ", blobs));
  }
  const std::vector<std::uint8_t> tables = file::Encode(package);
  const Header header = MakeHeader(tables);
  std::vector<std::uint8_t> content(header.begin(), header.end());
  content.insert(content.end(), tables.begin(), tables.end());
  return content;
}

absl::Status WriteProgramFile(const std::string& path, const Package& package) {
  const absl::StatusOr<std::vector<std::uint8_t>> content = SerializePackage(package);
  if (!content.ok()) return content.status();
  return WriteFileAtomically(path, {*content});
}

absl::StatusOr<Package> ParsePackage(absl::Span<const std::uint8_t> content, const std::string& origin) {
  if (absl::Status status = CheckHeader(content, origin); !status.ok()) return status;
  // Whoever called may have put the content anywhere.
  const absl::Span<const std::uint8_t> tables = content.subspan(kHeaderBytes);
  std::vector<std::uint64_t> words((tables.size() + 7) / 8);
  if (!tables.empty()) std::memcpy(words.data(), tables.data(), tables.size());
  absl::StatusOr<Package> package = file::Decode({reinterpret_cast<const std::uint8_t*>(words.data()), tables.size()});
  const absl::Status status = package.ok() ? CheckPackage(*package) : package.status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is malformed: ", status.message()));
  }
  return package;
}

absl::StatusOr<Package> ReadProgramFile(const std::string& path) {
  const absl::StatusOr<std::vector<std::uint8_t>> content = ReadFileContent(path);
  if (!content.ok()) return content.status();
  return ParsePackage(*content, path);
}

}  // namespace mpc::runtime
