#include "frontend/data/image_folder.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"
#include "runtime/file_content.h"

namespace mpc::data {
namespace {

namespace fs = std::filesystem;

struct LabelledFile {
  std::string path;
  std::int32_t label = 0;
};

/// The entries of a folder in the order of their names, without those that begin with a dot.
absl::StatusOr<std::vector<fs::path>> EntriesOf(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator iterator(folder, error);
  for (; !error && iterator != fs::directory_iterator(); iterator.increment(error)) {
    if (!iterator->path().filename().string().starts_with('.')) entries.push_back(iterator->path());
  }
  if (error) {
    const std::string message = absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message());
    return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(message)
                                                         : absl::InvalidArgumentError(message);
  }
  std::ranges::sort(entries);
  return entries;
}

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool HasPictureName(const fs::path& path, const std::vector<std::string>& extensions) {
  const std::string extension = absl::AsciiStrToLower(path.extension().string());
  return std::ranges::any_of(extensions,
                             [&](const std::string& known) { return absl::AsciiStrToLower(known) == extension; });
}

absl::Status AddPictures(const fs::path& folder, std::int32_t label, const std::vector<std::string>& extensions,
                         std::vector<LabelledFile>* files) {
  const absl::StatusOr<std::vector<fs::path>> entries = EntriesOf(folder);
  if (!entries.ok()) return entries.status();
  if (entries->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the class folder ", folder.string(), " has no pictures"));
  }
  for (const fs::path& entry : *entries) {
    std::error_code ignored;
    const fs::file_status status = fs::status(entry, ignored);
    if (fs::is_directory(status)) {
      return absl::InvalidArgumentError(
          absl::StrCat(entry.string(), " is a folder inside a class folder, where only pictures may be"));
    }
    if (!HasPictureName(entry, extensions)) {
      return absl::InvalidArgumentError(
          absl::StrCat(entry.string(), " is no picture by its name; accepted are ", absl::StrJoin(extensions, ", ")));
    }
    // Reading a pipe would wait for who writes there.
    if (!fs::is_regular_file(status)) {
      return absl::InvalidArgumentError(absl::StrCat(entry.string(),
                                                     fs::exists(status) ? " is no file" : " leads to no file",
                                                     ", and a class folder has files of pictures alone"));
    }
    files->push_back({entry.string(), label});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<fs::path>> ClassFolders(const std::string& dataset_dir,
                                                   const std::vector<std::string>& extensions) {
  const absl::StatusOr<std::vector<fs::path>> entries = EntriesOf(dataset_dir);
  if (!entries.ok()) return entries.status();
  std::vector<fs::path> folders;
  for (const fs::path& entry : *entries) {
    if (IsFolder(entry)) {
      folders.push_back(entry);
    } else if (HasPictureName(entry, extensions)) {
      return absl::InvalidArgumentError(absl::StrCat("the picture ", entry.string(),
                                                     " is in no class folder; each class has a folder of its own in ",
                                                     dataset_dir));
    }
  }
  if (folders.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(dataset_dir, folders.empty() ? " has no class folders" : " has one class folder only, ",
                     folders.empty() ? "" : folders[0].filename().string(),
                     "; each class has a folder of its own, and a data set "
                     "has two classes or more"));
  }
  return folders;
}

absl::StatusOr<Row> ReadRow(const LabelledFile& file) {
  const absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(file.path);
  if (!content.ok()) return content.status();
  if (content->empty()) return absl::InvalidArgumentError(absl::StrCat("the picture ", file.path, " is empty"));
  runtime::AlignedBuffer buffer(content->size());
  std::memcpy(buffer.data(), content->data(), content->size());
  return Row{mpc::internal::MakeConcrete({DType::kU8, {static_cast<std::int64_t>(content->size())}}, std::move(buffer),
                                         file.path),
             Tensor::Scalar(file.label)};
}

}  // namespace

Dataset ImageFolderDataset(const std::string& dataset_dir, const ImageFolderOptions& options) {
  const absl::StatusOr<std::vector<fs::path>> folders = ClassFolders(dataset_dir, options.extensions);
  if (!folders.ok()) return Dataset(folders.status());
  std::vector<LabelledFile> files;
  std::vector<std::string> class_names;
  for (const fs::path& folder : *folders) {
    const auto label = static_cast<std::int32_t>(class_names.size());
    class_names.push_back(folder.filename().string());
    absl::Status status = AddPictures(folder, label, options.extensions, &files);
    if (!status.ok()) return Dataset(std::move(status));
  }
  const auto size = static_cast<std::int64_t>(files.size());
  auto get = [files = std::move(files)](std::int64_t row) { return ReadRow(files[static_cast<std::size_t>(row)]); };
  return GeneratorDataset(std::move(get), size, {"image", "label"}, options.sampling)
      .WithClassNames(std::move(class_names));
}

}  // namespace mpc::data
