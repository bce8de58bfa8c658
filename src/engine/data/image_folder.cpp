#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "engine/data/natural_order.h"
#include "engine/data/picture_file.h"
#include "engine/data/source.h"
#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

using FolderId = std::pair<dev_t, ino_t>;

struct Folder {
  std::vector<std::string> folders;  ///< sorted by their bytes, as are the files
  std::vector<std::string> files;
};

Error cannot_read(const fs::path& path, int error_number) {
  return bad_input(fmt::format("cannot read {}: {}", shown(path),
                               std::generic_category().message(error_number)));
}

// A link counts as what it leads to; one that leads nowhere is a file that cannot be read.
bool is_folder(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Result<Folder> list(const fs::path& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(path.c_str()), ::closedir);
  if (!opened) {
    return cannot_read(path, errno);
  }
  Folder folder;
  errno = 0;
  while (const dirent* entry = ::readdir(opened.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") {
      const bool known = entry->d_type == DT_DIR || entry->d_type == DT_REG;
      const bool is = known ? entry->d_type == DT_DIR : is_folder(path / name);
      (is ? folder.folders : folder.files).push_back(name);
    }
    errno = 0;
  }
  if (errno != 0) {
    return cannot_read(path, errno);
  }
  std::ranges::sort(folder.folders);
  std::ranges::sort(folder.files);
  return folder;
}

/// Walks one class at a time and collects its images.
class Walk {
 public:
  explicit Walk(fs::path root) : root_(std::move(root)) {}

  struct Found {
    std::vector<std::string> files;  ///< relative to the root
    std::vector<std::string> remarks;
  };

  /// The names of the classes' folders, by their bytes.
  Result<std::vector<std::string>> classes() {
    auto folder = list(root_);
    if (!folder) {
      return folder.error();
    }
    std::erase_if(folder->folders, [this](const std::string& name) { return hidden(name); });
    for (const std::string& name : folder->files) {
      loose_ += is_picture_name(name) ? 1 : 0;
    }
    if (loose_ > 0) {
      found_.remarks.push_back(
          fmt::format("{}: {} images in no class's folder are left out", shown(root_), loose_));
    }
    return std::move(folder->folders);
  }

  Result<void> enter_class(const std::string& name) {
    seen_.clear();
    if (const auto id = identify(root_)) {
      seen_.insert(*id);
    }
    const std::size_t before = found_.files.size();
    folders_.clear();
    if (auto walked = walk(name); !walked) {
      return walked;
    }
    // As torchvision sorts what it walked: folders by their whole paths, then their files.
    std::ranges::sort(folders_);
    for (auto& [folder, files] : folders_) {
      for (const std::string& file : files) {
        found_.files.push_back(fmt::format("{}/{}", folder, file));
      }
    }
    if (found_.files.size() == before) {
      found_.remarks.push_back(
          fmt::format("{}: a class without an image", shown(root_ / name)));
    }
    return {};
  }

  Found take() {
    if (others_ > 0) {
      found_.remarks.push_back(
          fmt::format("{} files are left out, as they are not named .jpg, .jpeg or .png; the "
                      "first is {}",
                      others_, shown(first_other_)));
    }
    return std::move(found_);
  }

  /// Of the classes so far.
  std::int64_t files() const { return static_cast<std::int64_t>(found_.files.size()); }
  std::int64_t loose() const { return loose_; }

 private:
  static std::optional<FolderId> identify(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      return std::nullopt;
    }
    return FolderId{status.st_dev, status.st_ino};
  }

  bool hidden(const std::string& name, const std::string& within = "") {
    if (!name.starts_with('.')) {
      return false;
    }
    found_.remarks.push_back(fmt::format("{}: left out, as its name begins with a dot",
                                         shown(root_ / within / name)));
    return true;
  }

  // A stack of its own: folders can be nested deeper than calls.
  Result<void> walk(const std::string& name) {
    std::vector<std::string> todo{name};
    while (!todo.empty()) {
      const std::string within = std::move(todo.back());
      todo.pop_back();
      const auto id = identify(root_ / within);
      if (!id) {
        return cannot_read(root_ / within, errno);
      }
      if (!seen_.insert(*id).second) {
        found_.remarks.push_back(
            fmt::format("{}: not entered, as it leads to a folder that was entered before",
                        shown(root_ / within)));
        continue;
      }
      auto folder = list(root_ / within);
      if (!folder) {
        return folder.error();
      }
      for (auto each = folder->folders.rbegin(); each != folder->folders.rend(); ++each) {
        if (!hidden(*each, within)) {
          todo.push_back(within + "/" + *each);
        }
      }
      keep_images(within, std::move(folder->files));
    }
    return {};
  }

  void keep_images(const std::string& within, std::vector<std::string> files) {
    std::erase_if(files, [&](const std::string& name) {
      const bool other = !is_picture_name(name);
      if (other && others_++ == 0) {
        first_other_ = root_ / within / name;
      }
      return other;
    });
    folders_.emplace_back(within, std::move(files));
  }

  fs::path root_;
  std::set<FolderId> seen_;  ///< of this class, and the root
  std::vector<std::pair<std::string, std::vector<std::string>>> folders_;  ///< of this class
  Found found_;
  std::int64_t loose_ = 0;   ///< images beside the classes' folders
  std::int64_t others_ = 0;  ///< files that are not named as images
  fs::path first_other_;
};

class ImageFolder final : public Source {
 public:
  static Result<std::unique_ptr<Source>> open(const fs::path& root,
                                              const ImageFolderOptions& options) {
    std::unique_ptr<ImageFolder> folder(new ImageFolder(root, options.decode));
    Walk walk(root);
    auto names = walk.classes();
    if (!names) {
      return names.error();
    }
    if (options.order == ClassOrder::natural) {
      std::ranges::sort(*names, natural_less);
    }
    for (const std::string& name : *names) {
      if (auto entered = walk.enter_class(name); !entered) {
        return entered.error();
      }
      folder->ends_.push_back(walk.files());
    }
    folder->classes_ = ClassMap(std::move(*names));
    Walk::Found found = walk.take();
    if (found.files.empty()) {
      return bad_input(fmt::format(
          "{}: no image in it, in {} folders of classes{}; needed CLASS/*.jpg, .jpeg or .png",
          shown(root), folder->classes_.size(),
          walk.loose() > 0 ? fmt::format(" ({} images lie beside them)", walk.loose()) : ""));
    }
    folder->files_ = std::move(found.files);
    folder->remarks_ = std::move(found.remarks);
    return std::unique_ptr<Source>(std::move(folder));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  const ClassMap& classes() const override { return classes_; }
  std::int64_t label(std::int64_t place) const override {
    return std::ranges::upper_bound(ends_, place) - ends_.begin();
  }
  std::string name(std::int64_t place) const override { return shown(path(place)); }
  Result<Image> read(std::int64_t place) const override { return read_part(place, {}); }
  Result<Image> read_part(std::int64_t place, const PartOf& part) const override {
    auto image = read_picture(path(place), decode_, part);
    if (image && image->turned) {
      const std::lock_guard lock(mutex_);
      turned_.insert(place);
    }
    return image;
  }
  std::vector<std::string> remarks() const override { return remarks_; }
  std::int64_t turned() const override {
    const std::lock_guard lock(mutex_);
    return std::ssize(turned_);
  }

 private:
  ImageFolder(fs::path root, const DecodePolicy& decode)
      : root_(std::move(root)), decode_(decode) {}

  fs::path path(std::int64_t place) const {
    HALFWATT_CHECK(place >= 0 && place < size(), "a place of this source");
    return root_ / files_[static_cast<std::size_t>(place)];
  }

  fs::path root_;
  DecodePolicy decode_;
  ClassMap classes_;
  std::vector<std::string> files_;  ///< relative to the root, class after class
  std::vector<std::int64_t> ends_;  ///< of each class, the place behind its last image
  std::vector<std::string> remarks_;
  mutable std::mutex mutex_;
  mutable std::unordered_set<std::int64_t> turned_;  ///< their places
};

}  // namespace

Result<std::unique_ptr<Source>> open_image_folder(const fs::path& folder,
                                                  const ImageFolderOptions& options) {
  return ImageFolder::open(folder, options);
}

}  // namespace halfwatt
