// Menus, consent and the comment form of the sample site.
(function () {
  "use strict";
  var banner = document.getElementById("cookie-banner");
  if (banner) {
    banner.addEventListener("click", function (event) {
      if (event.target.dataset && event.target.dataset.consent) banner.remove();
    });
  }
})();
