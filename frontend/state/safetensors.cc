#include "frontend/state/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/state/pickle.h"
#include "runtime/atomic_file.h"
#include "runtime/file_content.h"

namespace mpc {
namespace {

/// Its objects find a key in logarithmic time, and are sorted. The order of a file stands beside them.
using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
/// The Python library's limit.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr char kMetadataKey[] = "__metadata__";

/// In the order in which the Python library writes tensors.
constexpr std::array kWritingOrder = {DType::kI64,  DType::kF64, DType::kF32,      DType::kI32,
                                      DType::kBF16, DType::kF16, DType::kF8E4M3FN, DType::kF8E5M2,
                                      DType::kI8,   DType::kU8,  DType::kBool};
static_assert(kWritingOrder.size() == kDTypes.size());

std::size_t PlaceOf(DType dtype) {
  return static_cast<std::size_t>(std::find(kWritingOrder.begin(), kWritingOrder.end(), dtype) - kWritingOrder.begin());
}

std::string NameInFile(DType dtype) { return std::string(InfoOf(dtype).safetensors); }

std::string AcceptedDTypes() {
  std::string names;
  for (const DType dtype : kWritingOrder) absl::StrAppend(&names, names.empty() ? "" : ", ", NameInFile(dtype));
  return names;
}

/// One entry of the header.
struct Entry {
  std::string name;
  TensorSpec spec;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Parses a header, and notes what its parsed form drops: the order of the outermost object's keys, and the first key
/// that an object repeats. A callback of Json::parse would do so in quadratic time.
class HeaderParser : public nlohmann::json_sax<Json> {
 public:
  const Json& header() const { return header_; }
  const std::vector<std::string>& order() const { return order_; }
  const std::optional<std::string>& repeated() const { return repeated_; }

  bool start_object(std::size_t /*elements*/) override {
    keys_.emplace_back();
    return Open(Json::object());
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second && !repeated_) repeated_ = name;
    if (keys_.size() == 1) order_.push_back(name);
    key_ = name;
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return Close();
  }
  bool start_array(std::size_t /*elements*/) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  /// Puts `value` where the innermost open value takes it.
  Json& Place(Json value) {
    if (open_.empty()) return header_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }
  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }
  /// What is open moves no more: nothing is added to its parent before it is closed.
  bool Open(Json value) {
    open_.push_back(&Place(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  Json header_;
  std::vector<Json*> open_;
  std::string key_;
  std::vector<std::set<std::string>> keys_;
  std::vector<std::string> order_;
  std::optional<std::string> repeated_;
};

/// Reads the header of one file; errors begin with its name.
class HeaderReader {
 public:
  HeaderReader(const std::string& origin, std::uint64_t data_bytes) : origin_(origin), data_bytes_(data_bytes) {}

  absl::StatusOr<std::vector<Entry>> Read(std::string_view text, std::map<std::string, std::string>* metadata) const {
    HeaderParser parser;
    if (!Json::sax_parse(text.begin(), text.end(), &parser)) return Error("the header is not valid JSON");
    if (parser.repeated()) return Error(absl::StrCat("the header names '", *parser.repeated(), "' twice"));
    const Json& header = parser.header();
    if (!header.is_object()) return Error("the header is not a JSON object");
    std::vector<Entry> entries;
    for (const std::string& name : parser.order()) {
      const Json& value = header.at(name);
      if (name == kMetadataKey) {
        if (absl::Status status = ReadMetadata(value, metadata); !status.ok()) return status;
        continue;
      }
      absl::StatusOr<Entry> entry = ReadEntry(name, value);
      if (!entry.ok()) return entry.status();
      entries.push_back(*std::move(entry));
    }
    if (absl::Status status = CheckCoverage(&entries); !status.ok()) return status;
    return entries;
  }

 private:
  absl::Status Error(const std::string& message) const {
    return absl::InvalidArgumentError(absl::StrCat(origin_, ": ", message));
  }

  absl::Status ReadMetadata(const Json& value, std::map<std::string, std::string>* metadata) const {
    if (!value.is_object()) return Error("__metadata__ is not an object of strings");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) return Error(absl::StrCat("__metadata__ entry '", key, "' is not a string"));
      (*metadata)[key] = text.get<std::string>();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Entry> ReadEntry(const std::string& name, const Json& value) const {
    const std::string where = absl::StrCat("tensor '", name, "': ");
    Entry entry{.name = name};
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets")) {
      return Error(where + "not an object with dtype, shape and data_offsets");
    }
    if (absl::Status status = ReadDType(where, value["dtype"], &entry); !status.ok()) return status;
    const std::optional<std::vector<std::uint64_t>> shape = Integers(value["shape"]);
    if (!shape) return Error(where + "shape is not a list of non-negative integers");
    entry.spec.shape.assign(shape->begin(), shape->end());
    if (absl::Status status = internal::CheckSpec(entry.spec); !status.ok()) {
      return Error(absl::StrCat(where, status.message()));
    }
    const std::optional<std::vector<std::uint64_t>> offsets = Integers(value["data_offsets"]);
    if (!offsets || offsets->size() != 2) return Error(where + "data_offsets is not a list of two offsets");
    entry.begin = (*offsets)[0];
    entry.end = (*offsets)[1];
    const std::string range = absl::StrCat("data_offsets [", entry.begin, ", ", entry.end, "]");
    if (entry.begin > entry.end || entry.end > data_bytes_) {
      return Error(absl::StrCat(where, range, " are not inside the file's ", data_bytes_, " bytes of data"));
    }
    if (entry.end - entry.begin != entry.spec.bytes()) {
      return Error(absl::StrCat(where, range, " hold ", entry.end - entry.begin, " bytes, ", entry.spec.ToString(),
                                " needs ", entry.spec.bytes()));
    }
    return entry;
  }

  absl::Status ReadDType(const std::string& where, const Json& value, Entry* entry) const {
    if (!value.is_string()) return Error(where + "dtype is not a string");
    const std::string& name = value.get_ref<const std::string&>();
    for (const DType dtype : kWritingOrder) {
      if (name == InfoOf(dtype).safetensors) {
        entry->spec.dtype = dtype;
        return absl::OkStatus();
      }
    }
    return Error(absl::StrCat(where, "unknown dtype '", name, "'; accepted are ", AcceptedDTypes()));
  }

  static std::optional<std::vector<std::uint64_t>> Integers(const Json& value) {
    if (!value.is_array()) return std::nullopt;
    std::vector<std::uint64_t> integers;
    for (const Json& element : value) {
      if (!element.is_number_unsigned()) return std::nullopt;
      integers.push_back(element.get<std::uint64_t>());
      if (integers.back() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    }
    return integers;
  }

  /// Sorts by offset; the entries must cover the data exactly once.
  absl::Status CheckCoverage(std::vector<Entry>* entries) const {
    std::stable_sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t covered = 0;
    const Entry* previous = nullptr;
    for (const Entry& entry : *entries) {
      if (entry.begin < covered) {
        return Error(absl::StrCat("tensors '", previous->name, "' and '", entry.name, "' overlap: [", previous->begin,
                                  ", ", previous->end, "] and [", entry.begin, ", ", entry.end, "]"));
      }
      if (entry.begin > covered) {
        return Error(absl::StrCat("tensor '", entry.name, "' begins at ", entry.begin,
                                  ", but the data before it ends at ", covered));
      }
      covered = entry.end;
      previous = &entry;
    }
    if (covered != data_bytes_) {
      return Error(absl::StrCat("the file has ", data_bytes_, " bytes of data, its tensors end at ", covered));
    }
    return absl::OkStatus();
  }

  const std::string& origin_;
  std::uint64_t data_bytes_;
};

absl::Status CheckTensors(const std::string& path, const Safetensors& content) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : content.tensors) {
    const std::string where = absl::StrCat("cannot save ", path, ": tensor '", name, "' ");
    if (name == kMetadataKey) return absl::InvalidArgumentError(where + "has a reserved name");
    if (!names.insert(name).second) return absl::InvalidArgumentError(where + "is given twice");
    if (!tensor.status().ok())
      return absl::InvalidArgumentError(absl::StrCat(where, "is ", tensor.status().ToString()));
    if (!tensor.concrete()) {
      return absl::InvalidArgumentError(absl::StrCat(where, "is ", tensor.defined() ? "symbolic" : "empty"));
    }
  }
  return absl::OkStatus();
}

/// Tensors in file order.
std::vector<const std::pair<std::string, Tensor>*> InFileOrder(const Safetensors& content) {
  std::vector<const std::pair<std::string, Tensor>*> ordered;
  for (const auto& entry : content.tensors) ordered.push_back(&entry);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return std::pair(PlaceOf(a->second.dtype()), std::string_view(a->first)) <
           std::pair(PlaceOf(b->second.dtype()), std::string_view(b->first));
  });
  return ordered;
}

/// What the header says of a tensor, in the order of the Python library.
std::string EntryText(const Tensor& tensor, std::uint64_t begin, std::uint64_t end) {
  using OrderedJson = nlohmann::ordered_json;
  return OrderedJson{{"dtype", NameInFile(tensor.dtype())}, {"shape", tensor.shape()}, {"data_offsets", {begin, end}}}
      .dump();
}

}  // namespace

const Tensor* Safetensors::Find(std::string_view name) const {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return &tensor;
  }
  return nullptr;
}

absl::Status SaveSafetensors(const std::string& path, const Safetensors& content) {
  if (absl::Status status = CheckTensors(path, content); !status.ok()) return status;
  std::uint64_t offset = 0;
  std::vector<absl::Span<const std::uint8_t>> chunks(1);
  std::string text = "{";
  try {
    if (!content.metadata.empty()) {
      absl::StrAppend(&text, Json(kMetadataKey).dump(), ":", Json(content.metadata).dump());
    }
    for (const auto* entry : InFileOrder(content)) {
      const auto& [name, tensor] = *entry;
      const std::uint64_t end = offset + tensor.bytes().size();
      absl::StrAppend(&text, text.size() > 1 ? "," : "", Json(name).dump(), ":", EntryText(tensor, offset, end));
      offset = end;
      chunks.push_back(tensor.bytes());
    }
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("cannot save ", path, ": a name is not UTF-8 (", error.what(), ")"));
  }
  text.push_back('}');
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string front;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    front.push_back(static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xff));
  }
  front += text;
  chunks[0] = {reinterpret_cast<const std::uint8_t*>(front.data()), front.size()};
  return runtime::WriteFileAtomically(path, chunks);
}

absl::StatusOr<Safetensors> ParseSafetensors(absl::Span<const std::uint8_t> content, const std::string& origin) {
  if (internal::IsPickle(content)) return absl::InvalidArgumentError(internal::PickleAdvice(origin));
  if (content.size() < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is not a safetensors file: ", content.size(),
                                                   " bytes, the header length alone takes ", kLengthBytes));
  }
  std::uint64_t header_bytes = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) header_bytes = header_bytes << 8 | content[i];
  const std::uint64_t rest = content.size() - kLengthBytes;
  if (header_bytes > rest || header_bytes > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is truncated or not a safetensors file: by its first ",
                                                   kLengthBytes, " bytes the header should have ", header_bytes,
                                                   " bytes, but ", rest, " follow (limit ", kMaxHeaderBytes, ")"));
  }
  const std::string_view text(reinterpret_cast<const char*>(content.data()) + kLengthBytes, header_bytes);
  const absl::Span<const std::uint8_t> data = content.subspan(kLengthBytes + header_bytes);
  Safetensors result;
  absl::StatusOr<std::vector<Entry>> entries = HeaderReader(origin, data.size()).Read(text, &result.metadata);
  if (!entries.ok()) return entries.status();
  for (Entry& entry : *entries) {
    const absl::Span<const std::uint8_t> bytes = data.subspan(entry.begin, entry.end - entry.begin);
    result.tensors.emplace_back(std::move(entry.name),
                                Tensor::FromBytes(std::move(entry.spec), bytes.data(), bytes.size()));
  }
  return result;
}

absl::StatusOr<Safetensors> LoadSafetensors(const std::string& path) {
  absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok()) return content.status();
  return ParseSafetensors(*content, path);
}

}  // namespace mpc
