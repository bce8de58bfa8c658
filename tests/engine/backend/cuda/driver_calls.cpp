#include "engine/backend/cuda/driver_calls.h"

#include <mutex>
#include <utility>

#ifdef HALFWATT_HAS_CUPTI
#include <cupti.h>
#endif

namespace halfwatt {

#ifdef HALFWATT_HAS_CUPTI
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, int> by_name;
};
Counts& counts() {
  static Counts all;
  return all;
}

bool holds(const std::string& name, const char* part) {
  return name.find(part) != std::string::npos;
}

// A copy that returns when it is done, a wait, memory that comes or goes.
bool is_a_wait(const std::string& name) {
  const bool waits = holds(name, "Synchronize");
  const bool copies =
      (holds(name, "cuMemcpy") || holds(name, "cuMemset")) && !holds(name, "Async");
  const bool allocates = holds(name, "cuMemAlloc") || holds(name, "cuMemFree") ||
                         holds(name, "cuMemHost") || holds(name, "cuMemCreate") ||
                         holds(name, "cuMemMap");
  return waits || copies || allocates;
}

void CUPTIAPI note(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  const char* name = nullptr;
  if (call->callbackSite != CUPTI_API_ENTER ||
      cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !is_a_wait(name)) {
    return;
  }
  const std::lock_guard lock(counts().mutex);
  ++counts().by_name[name];
}

}  // namespace

DriverCalls::DriverCalls() {
  CUpti_SubscriberHandle subscriber = nullptr;
  CUptiResult said = cuptiSubscribe(&subscriber, note, nullptr);
  subscriber_ = subscriber;
  if (said == CUPTI_SUCCESS) {
    said = cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  }
  if (said != CUPTI_SUCCESS) {
    const char* words = "";
    cuptiGetResultString(said, &words);
    why_not_ = std::string("CUPTI: ") + words;
  }
  taken();
}

DriverCalls::~DriverCalls() {
  if (subscriber_ != nullptr) {
    cuptiUnsubscribe(static_cast<CUpti_SubscriberHandle>(subscriber_));
  }
}

std::map<std::string, int> DriverCalls::taken() {
  const std::lock_guard lock(counts().mutex);
  return std::exchange(counts().by_name, {});
}
#else
DriverCalls::DriverCalls() : why_not_("built without CUPTI") {}
DriverCalls::~DriverCalls() = default;
std::map<std::string, int> DriverCalls::taken() { return {}; }
#endif

}  // namespace halfwatt
