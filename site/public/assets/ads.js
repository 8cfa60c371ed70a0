/* An advertising network would load here. */ window.adsLoaded = true;
