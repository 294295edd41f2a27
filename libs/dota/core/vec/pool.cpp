#include "vec/pool.hpp"

namespace dota {

Pool::Pool(int threads) {
  for (int i = 1; i < threads; ++i)
    workers_.emplace_back([this, i] { loop(i); });
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& t : workers_)
    t.join();
}

void Pool::take(int thread, const Work& work, int n) {
  const auto claim = [&] { return next_.fetch_add(1, std::memory_order_relaxed); };
  for (int i = claim(); i < n;) {
    // Near the end nobody holds a piece back that another thread could begin.
    const int ahead = n - i > 2 * threads() ? claim() : -1;
    work(thread, i, ahead < n ? ahead : -1);
    i = ahead >= 0 ? ahead : claim();
  }
}

void Pool::run(int n, const Work& work) {
  if (workers_.empty() || n <= 1) {
    for (int i = 0; i < n; ++i)
      work(0, i, i + 1 < n ? i + 1 : -1);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    n_ = n;
    next_.store(0, std::memory_order_relaxed);
    active_ = static_cast<int>(workers_.size());
    ++run_;
  }
  start_.notify_all();
  take(0, work, n);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return active_ == 0; });
  work_ = nullptr;
}

void Pool::loop(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    const Work* work = nullptr;
    int n = 0;
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || run_ != seen; });
      if (stop_) return;
      seen = run_;
      work = work_;
      n = n_;
    }
    take(thread, *work, n);
    {
      const std::lock_guard lock(mutex_);
      if (--active_ > 0) continue;
    }
    done_.notify_one();
  }
}

}  // namespace dota
